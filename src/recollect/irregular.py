"""English forms that no stemming rule brings together: told is of tell, children are of child."""

from __future__ import annotations

# Each line: the form that stands for all, then the others.
_FORMS = """
become became
begin began begun
bend bent
bite bit bitten
blow blew blown
break broke broken
bring brought
build built
burn burnt
buy bought
catch caught
child children
choose chose chosen
come came
deal dealt
dig dug
draw drew drawn
dream dreamt
drink drank drunk
drive drove driven
eat ate eaten
fall fell fallen
feed fed
feel felt
fight fought
find found
fly flew flown
foot feet
forget forgot forgotten
freeze froze frozen
give gave given
go went gone
goose geese
grow grew grown
half halves
hang hung
hear heard
hide hid hidden
hold held
keep kept
knife knives
know knew known
lead led
learn learnt
lend lent
lose lost
make made
man men
mean meant
meet met
mouse mice
pay paid
person people
ride rode ridden
rise rose risen
run ran
say said
see saw seen
seek sought
sell sold
send sent
shake shook shaken
shelf shelves
shoot shot
sing sang sung
sink sank sunk
sit sat
sleep slept
slide slid
speak spoke spoken
spend spent
spin spun
stand stood
steal stole stolen
stick stuck
strike struck
sweep swept
swim swam swum
take took taken
teach taught
tear tore torn
tell told
think thought
throw threw thrown
tooth teeth
understand understood
wake woke woken
wear wore worn
wife wives
win won
wolf wolves
woman women
write wrote written
"""

FORMS = {
    other: line.split()[0] for line in _FORMS.strip().splitlines() for other in line.split()[1:]
}
