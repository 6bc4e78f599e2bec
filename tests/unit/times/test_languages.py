"""Times in seven languages: each means what the same words mean in English."""

from __future__ import annotations

from datetime import UTC, date, datetime

from recollect.languages import LANGUAGES
from recollect.times import Facing, dates, time_ranges
from recollect.times.lexicon import lexicon
from recollect.times.reader import grammar
from tests.tables import every_row

NOW = datetime(2023, 6, 14, 15, 30, tzinfo=UTC)  # a Wednesday

SAME = {
    "yesterday": "de gestern|es ayer|fr hier|pt ontem|it ieri|nl gisteren",
    "the day before yesterday": "de vorgestern|es anteayer|fr avant-hier|nl eergisteren",
    "tomorrow": "de morgen|es mañana|fr demain|pt amanhã|it domani|nl morgen",
    "this morning": "de heute Morgen|es esta mañana|fr ce matin|pt esta manhã|it stamattina",
    "yesterday evening": "de gestern Abend|es anoche|fr hier soir|pt ontem à noite|nl gisteravond",
    "last week": "de letzte Woche|es la semana pasada|fr la semaine dernière|pt a semana passada"
    "|it la settimana scorsa|nl vorige week",
    "last Monday": "de letzten Montag|es el lunes pasado|fr lundi dernier|it lunedì scorso"
    "|pt na segunda-feira passada|nl vorige maandag",
    "on Friday": "de am Freitag|es el viernes|fr vendredi|pt na sexta-feira|it venerdì"
    "|nl op vrijdag",
    "next month": "de nächsten Monat|es el próximo mes|fr le mois prochain|pt o mês que vem"
    "|it il mese prossimo|nl volgende maand",
    "last year": "es el año pasado|fr l'année dernière|pt no ano passado|it l'anno scorso"
    "|nl vorig jaar",
    "two weeks ago": "de vor zwei Wochen|es hace dos semanas|fr il y a deux semaines"
    "|pt há duas semanas|it due settimane fa|nl twee weken geleden",
    "3 years ago": "de vor 3 Jahren|es hace 3 años|fr il y a 3 ans|pt há 3 anos|it 3 anni fa",
    "in the last ten days": "de in den letzten zehn Tagen|es en los últimos diez días"
    "|fr les dix derniers jours|pt nos últimos dez dias|it negli ultimi dieci giorni"
    "|nl in de afgelopen tien dagen",
    "in May 2023": "de im Mai 2023|es en mayo de 2023|fr en mai 2023|pt em maio de 2023"
    "|it a maggio 2023|nl in mei 2023",
    "last summer": "de letzten Sommer|es el verano pasado|fr l'été dernier|pt no verão passado"
    "|it l'estate scorsa|nl vorige zomer",
    "the summer of 2021": "de im Sommer 2021|es en el verano de 2021|fr à l'été 2021"
    "|pt no verão de 2021|it nell'estate del 2021|nl in de zomer van 2021",
    "on 7 May": "de am 7. Mai|es el 7 de mayo|fr le 7 mai|pt no dia 7 de maio|it il 7 maggio"
    "|nl op 7 mei",
    "on 7 May 2022": "de am 7. Mai 2022|es el 7 de mayo de 2022|fr le 7 mai 2022"
    "|pt 7 de maio de 2022|it 7 maggio 2022|nl 7 mei 2022",
    "8 May 2023 at 14:30": "de 8. Mai 2023 um 14:30|fr 8 mai 2023 à 14h30|nl 8 mei 2023 om 14:30",
    "5 July 2023": "de 05/07/2023|es 05/07/2023|fr 05/07/2023|pt 5/7/2023|it 5/7/23|nl 05-07-2023",
    "since March": "de seit März|es desde marzo|fr depuis mars|pt desde março|it da marzo"
    "|nl sinds maart",
    "until Friday": "de bis Freitag|es hasta el viernes|fr jusqu'à vendredi|pt até sexta"
    "|it fino a venerdì|nl tot vrijdag",
    "before 2022": "de vor 2022|es antes de 2022|fr avant 2022|pt antes de 2022|it prima del 2022"
    "|nl voor 2022",
    "between March and May": "de zwischen März und Mai|es entre marzo y mayo|fr entre mars et mai"
    "|pt entre março e maio|it tra marzo e maggio|nl tussen maart en mei",
    "from July to October": "de von Juli bis Oktober|es de julio a octubre|fr de juillet à octobre",
    "the beginning of May": "de Anfang Mai|es a principios de mayo|fr début mai"
    "|pt no início de maio|it inizio maggio|nl begin mei",
    "the end of 2022": "de Ende 2022|es a finales de 2022|fr fin 2022|pt no final de 2022"
    "|it alla fine del 2022|nl eind 2022",
    "the week before 9 June 2023": "de die Woche vor dem 9. Juni 2023",
    "at Christmas": "de zu Weihnachten|es en Navidad|fr à Noël|pt no Natal|it a Natale"
    "|nl met kerst",
    "in the 90s": "de in den 90ern",
}
PAIRS = [
    (language, text, english)
    for english, others in SAME.items()
    for language, _, text in (other.partition(" ") for other in others.split("|") if other)
]


@every_row(("language", "text", "english"), PAIRS)
def test_a_time_means_the_same_in_every_language(language: str, text: str, english: str) -> None:
    [expected] = time_ranges(english, NOW, "en")

    [found] = time_ranges(text, NOW, language)

    assert (found.start, found.end) == (expected.start, expected.end)
    assert found.precision is expected.precision


@every_row(
    ("language", "text"),
    [
        ("de", "jeden Freitag"),
        ("es", "cada viernes"),
        ("fr", "chaque vendredi"),
        ("pt", "toda sexta"),
        ("it", "ogni venerdì"),
        ("nl", "elke vrijdag"),
        ("de", "Version 7.5.2023"),
        ("es", "mi casa"),
        ("fr", "il y a du pain"),
        ("it", "la porta 2023"),
        ("pt", "há pão"),
        ("nl", "het mei-nummer"),
    ],
)
def test_what_comes_again_or_is_no_time_is_left_alone(language: str, text: str) -> None:
    assert time_ranges(text, NOW, language) == []


@every_row(
    ("text", "start"),
    [
        ("Was habe ich letzte Woche über die Wohnung gesagt?", "2023-06-05"),
        ("¿Qué dije la semana pasada sobre el piso?", "2023-06-05"),
        ("Qu'est-ce que j'ai dit la semaine dernière ?", "2023-06-05"),
        ("O que eu disse na semana passada?", "2023-06-05"),
        ("Che cosa ho detto la settimana scorsa?", "2023-06-05"),
        ("Wat heb ik vorige week over het huis gezegd?", "2023-06-05"),
        ("What did I say last week?", "2023-06-05"),
    ],
)
def test_the_language_of_a_question_is_told_by_its_words(text: str, start: str) -> None:
    [found] = time_ranges(text, NOW)

    assert found.start.date().isoformat() == start


@every_row(
    ("language", "text", "facing", "label"),
    [
        ("de", "Wir ziehen in zwei Wochen um", Facing.AHEAD, "week of 2023-06-26"),
        ("de", "Wir fliegen am 30. Juni", Facing.AHEAD, "2023-06-30"),
        ("fr", "On a déménagé la semaine dernière", Facing.BACK, "week of 2023-06-05"),
        ("es", "Me jubilo en marzo de 2027", Facing.AHEAD, "2027-03"),
        ("nl", "In juli gaan we kamperen", Facing.AHEAD, "2023-07"),
        ("it", "Mi sono trasferita due mesi fa", Facing.BACK, "2023-04"),
        ("pt", "A consulta ficou para sexta", Facing.AHEAD, "2023-06-16"),
    ],
)
def test_a_statement_names_days_in_every_language(
    language: str, text: str, facing: Facing, label: str
) -> None:
    [when] = dates(text, date(2023, 6, 14), facing, language)

    assert when.label == label


@every_row("language", LANGUAGES)
def test_every_language_has_a_word_for_what_the_grammar_reads(language: str) -> None:
    words = lexicon(language)

    for table, count in {"month": 12, "weekday": 7, "unit": 9, "part": 3, "season": 4}.items():
        assert len(set(words.values[table].values())) >= count
    for role in ("the", "last", "next", "since", "before", "after", "until", "between", "rolling"):
        assert words.roles(role), role
    assert grammar(words).start.search("") is None
