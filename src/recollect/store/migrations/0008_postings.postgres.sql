-- Which entries have a word, a row for each. Under row-level security no other index can be asked for a
-- word: what may tell of a row that is not to be seen is not asked before the policies, and of the
-- comparisons that a full-text index knows the server trusts none. It trusts that of two texts.

CREATE TABLE postings (
    space TEXT COLLATE "C" NOT NULL,
    kind "char" NOT NULL CHECK (kind IN ('f', 'd', 's', 'r')),  -- fact, document, summary, record
    word TEXT COLLATE "C" NOT NULL,  -- the first 128 characters of it
    key BIGINT NOT NULL,  -- of the entry, among those of its kind
    PRIMARY KEY (space, kind, word, key)
);

ALTER TABLE postings ENABLE ROW LEVEL SECURITY;
ALTER TABLE postings FORCE ROW LEVEL SECURITY;
CREATE POLICY one_space ON postings USING (
    space = current_setting('recollect.space', true)
    OR current_setting('recollect.operator', true) = 'on');

-- Each word once.
CREATE FUNCTION recollect_words_of(words TEXT) RETURNS SETOF TEXT LANGUAGE sql IMMUTABLE AS $$
    SELECT DISTINCT left(w, 128) FROM unnest(string_to_array(words, ' ')) w WHERE w <> ''
$$;

CREATE FUNCTION recollect_post() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    entry BIGINT;
BEGIN
    IF TG_ARGV[0] = 'r' THEN entry := NEW.id; ELSE entry := NEW.key; END IF;
    INSERT INTO postings (space, kind, word, key)
    SELECT NEW.space, CAST(TG_ARGV[0] AS "char"), w, entry FROM recollect_words_of(NEW.words) w
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$;

-- One by one and by the index, whatever the server believes of a table that was empty a moment ago:
-- of a join it may look at every word for every posting.
CREATE FUNCTION recollect_unpost() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    entry BIGINT;
    gone TEXT;
BEGIN
    IF TG_ARGV[0] = 'r' THEN entry := OLD.id; ELSE entry := OLD.key; END IF;
    FOR gone IN SELECT w FROM recollect_words_of(OLD.words) w LOOP
        DELETE FROM postings p
        WHERE p.space = OLD.space AND p.kind = CAST(TG_ARGV[0] AS "char") AND p.word = gone
            AND p.key = entry;
    END LOOP;
    RETURN NULL;
END
$$;

-- What there is. The owner of the tables is under the policies as well.
SET LOCAL recollect.operator = 'on';

-- Facts from before their words were stemmed were so by the index. They are read again in time.
UPDATE facts SET words = array_to_string(
    tsvector_to_array(to_tsvector('recollect_words', words)), ' ')
WHERE NOT stemmed;

DO $$
DECLARE
    place TEXT[];
BEGIN
    FOREACH place SLICE 1 IN ARRAY ARRAY[
        ['session_history', 'r', 'id'], ['facts', 'f', 'key'],
        ['extractions', 's', 'key'], ['documents', 'd', 'key']
    ] LOOP
        EXECUTE format(
            'INSERT INTO postings (space, kind, word, key)'
            ' SELECT e.space, %L, w, e.%I FROM %I e CROSS JOIN recollect_words_of(e.words) w',
            place[2], place[3], place[1]);
        -- In the order of their names: what an entry had goes before what it has comes.
        EXECUTE format(
            'CREATE TRIGGER %I AFTER INSERT ON %I FOR EACH ROW'
            ' WHEN (NEW.words <> '''') EXECUTE FUNCTION recollect_post(%L)',
            place[1] || '_posted', place[1], place[2]);
        EXECUTE format(
            'CREATE TRIGGER %I AFTER DELETE ON %I FOR EACH ROW'
            ' WHEN (OLD.words <> '''') EXECUTE FUNCTION recollect_unpost(%L)',
            place[1] || '_unposted', place[1], place[2]);
        EXECUTE format(
            'CREATE TRIGGER %I AFTER UPDATE OF words ON %I FOR EACH ROW'
            ' WHEN (OLD.words IS DISTINCT FROM NEW.words) EXECUTE FUNCTION recollect_unpost(%L)',
            place[1] || '_words_1', place[1], place[2]);
        EXECUTE format(
            'CREATE TRIGGER %I AFTER UPDATE OF words ON %I FOR EACH ROW'
            ' WHEN (OLD.words IS DISTINCT FROM NEW.words) EXECUTE FUNCTION recollect_post(%L)',
            place[1] || '_words_2', place[1], place[2]);
    END LOOP;
END
$$;

-- No index over these was ever asked. Facts and documents keep theirs as columns, which are ranked by.
DROP INDEX idx_facts_search;
DROP INDEX idx_documents_search;
ALTER TABLE extractions DROP COLUMN search;
ALTER TABLE session_history DROP COLUMN search;

-- A record is looked up by its number alone, as every other entry.
CREATE UNIQUE INDEX idx_session_history_id ON session_history (id);
