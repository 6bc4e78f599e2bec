-- Vectors: what is told of those that went does not stay for ever, a model that others still use keeps
-- its vectors, and what may be remembered again is embedded after all.

-- Up to where it is not told any more which are gone.
ALTER TABLE vector_spaces ADD COLUMN pruned_upto BIGINT NOT NULL DEFAULT 0;
-- When somebody last had this model; 0: nobody has said.
ALTER TABLE embedded_records ADD COLUMN used_at BIGINT NOT NULL DEFAULT 0;

-- A session that may be remembered again: what was passed over in it has no vector, as any other.
CREATE FUNCTION recollect_reopen_vectors() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    first_id BIGINT;
BEGIN
    SELECT min(h.id) INTO first_id FROM session_history h WHERE h.session_id = NEW.id;
    IF first_id IS NULL THEN
        RETURN NULL;
    END IF;
    DELETE FROM vectors v USING session_history h
    WHERE h.session_id = NEW.id AND v.kind = 'record' AND v.entry_key = h.id
        AND length(v.vector) = 0;
    UPDATE embedded_records SET upto = first_id - 1 WHERE upto >= first_id;
    RETURN NULL;
END
$$;

CREATE TRIGGER sessions_vectors AFTER UPDATE OF remembered ON sessions
    FOR EACH ROW WHEN (NEW.remembered AND NOT OLD.remembered)
    EXECUTE FUNCTION recollect_reopen_vectors();

-- Those that were passed over before, and those that came late, once.
SET LOCAL recollect.operator = 'on';
DELETE FROM vectors WHERE kind = 'record' AND length(vector) = 0;
UPDATE embedded_records SET upto = 0;
