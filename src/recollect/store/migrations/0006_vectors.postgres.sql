-- Vectors of entries, by the model that made them. They go with what they are of, and when it changes.

CREATE TABLE vectors (
    key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    space TEXT COLLATE "C" NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('fact', 'document', 'summary', 'record')),
    entry_key BIGINT NOT NULL,
    model TEXT COLLATE "C" NOT NULL,
    vector BYTEA NOT NULL,
    UNIQUE (model, kind, entry_key)
);

CREATE INDEX idx_vectors_entry ON vectors (kind, entry_key);
CREATE INDEX idx_vectors_space ON vectors (space, model, key);

-- Which are gone, for those who hold them in memory.
CREATE TABLE dropped_vectors (
    key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    space TEXT COLLATE "C" NOT NULL,
    kind TEXT NOT NULL,
    entry_key BIGINT NOT NULL
);

CREATE INDEX idx_dropped_vectors_space ON dropped_vectors (space, key);

-- Whoever adds vectors to a space goes through its row first, so that their keys come in order.
CREATE TABLE vector_spaces (space TEXT COLLATE "C" PRIMARY KEY, additions BIGINT NOT NULL);

-- The models there are vectors of, and how far each has seen the records: those never change.
CREATE TABLE embedded_records (model TEXT COLLATE "C" PRIMARY KEY, upto BIGINT NOT NULL);

CREATE FUNCTION recollect_drop_vectors() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    WITH gone AS (
        DELETE FROM vectors v
        WHERE v.kind = TG_ARGV[0]
            AND v.entry_key = CAST(to_jsonb(OLD) ->> TG_ARGV[1] AS BIGINT)
        RETURNING v.space, v.kind, v.entry_key)
    INSERT INTO dropped_vectors (space, kind, entry_key)
    SELECT g.space, g.kind, g.entry_key FROM gone g;
    RETURN NULL;
END
$$;

CREATE TRIGGER session_history_vectors AFTER DELETE ON session_history
    FOR EACH ROW EXECUTE FUNCTION recollect_drop_vectors('record', 'id');
CREATE TRIGGER facts_vectors_ad AFTER DELETE ON facts
    FOR EACH ROW EXECUTE FUNCTION recollect_drop_vectors('fact', 'key');
CREATE TRIGGER facts_vectors_au AFTER UPDATE OF content ON facts
    FOR EACH ROW WHEN (OLD.content <> NEW.content)
    EXECUTE FUNCTION recollect_drop_vectors('fact', 'key');
CREATE TRIGGER extractions_vectors_ad AFTER DELETE ON extractions
    FOR EACH ROW EXECUTE FUNCTION recollect_drop_vectors('summary', 'key');
CREATE TRIGGER extractions_vectors_au AFTER UPDATE OF rollout_summary ON extractions
    FOR EACH ROW WHEN (OLD.rollout_summary <> NEW.rollout_summary)
    EXECUTE FUNCTION recollect_drop_vectors('summary', 'key');
CREATE TRIGGER documents_vectors_ad AFTER DELETE ON documents
    FOR EACH ROW EXECUTE FUNCTION recollect_drop_vectors('document', 'key');
CREATE TRIGGER documents_vectors_au AFTER UPDATE OF version ON documents
    FOR EACH ROW EXECUTE FUNCTION recollect_drop_vectors('document', 'key');

DO $$
DECLARE
    name TEXT;
BEGIN
    FOREACH name IN ARRAY ARRAY['vectors', 'dropped_vectors', 'vector_spaces'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY one_space ON %I USING ('
            'space = current_setting(''recollect.space'', true) '
            'OR current_setting(''recollect.operator'', true) = ''on'')', name);
    END LOOP;
END
$$;
