-- Vectors: what is told of those that went is little and does not stay for ever, a model that others
-- still use keeps its vectors, and what may be remembered again is embedded after all.

-- Up to where it is not told any more which are gone.
ALTER TABLE vector_spaces ADD COLUMN pruned_upto INTEGER NOT NULL DEFAULT 0;
-- When somebody last had this model; 0: nobody has said.
ALTER TABLE embedded_records ADD COLUMN used_at INTEGER NOT NULL DEFAULT 0;

-- A vector that goes because its model is not used any more is nobody's: only what its entry did is told.
DROP TRIGGER vectors_ad;
CREATE TRIGGER session_history_vectors_told BEFORE DELETE ON session_history BEGIN
    INSERT INTO dropped_vectors (space, kind, entry_key) SELECT DISTINCT v.space, v.kind, v.entry_key
    FROM vectors v WHERE v.kind = 'record' AND v.entry_key = old.id;
END;
CREATE TRIGGER facts_vectors_bd BEFORE DELETE ON facts BEGIN
    INSERT INTO dropped_vectors (space, kind, entry_key) SELECT DISTINCT v.space, v.kind, v.entry_key
    FROM vectors v WHERE v.kind = 'fact' AND v.entry_key = old.key;
END;
CREATE TRIGGER facts_vectors_bu BEFORE UPDATE OF content ON facts
WHEN old.content <> new.content BEGIN
    INSERT INTO dropped_vectors (space, kind, entry_key) SELECT DISTINCT v.space, v.kind, v.entry_key
    FROM vectors v WHERE v.kind = 'fact' AND v.entry_key = old.key;
END;
CREATE TRIGGER extractions_vectors_bd BEFORE DELETE ON extractions BEGIN
    INSERT INTO dropped_vectors (space, kind, entry_key) SELECT DISTINCT v.space, v.kind, v.entry_key
    FROM vectors v WHERE v.kind = 'summary' AND v.entry_key = old.key;
END;
CREATE TRIGGER extractions_vectors_bu BEFORE UPDATE OF rollout_summary ON extractions
WHEN old.rollout_summary <> new.rollout_summary BEGIN
    INSERT INTO dropped_vectors (space, kind, entry_key) SELECT DISTINCT v.space, v.kind, v.entry_key
    FROM vectors v WHERE v.kind = 'summary' AND v.entry_key = old.key;
END;
CREATE TRIGGER documents_vectors_bd BEFORE DELETE ON documents BEGIN
    INSERT INTO dropped_vectors (space, kind, entry_key) SELECT DISTINCT v.space, v.kind, v.entry_key
    FROM vectors v WHERE v.kind = 'document' AND v.entry_key = old.key;
END;
CREATE TRIGGER documents_vectors_bu BEFORE UPDATE OF version ON documents BEGIN
    INSERT INTO dropped_vectors (space, kind, entry_key) SELECT DISTINCT v.space, v.kind, v.entry_key
    FROM vectors v WHERE v.kind = 'document' AND v.entry_key = old.key;
END;

-- A session that may be remembered again: what was passed over in it has no vector, as any other.
CREATE TRIGGER sessions_vectors AFTER UPDATE OF remembered ON sessions
WHEN new.remembered AND NOT old.remembered BEGIN
    DELETE FROM vectors WHERE kind = 'record' AND length(vector) = 0
        AND entry_key IN (SELECT h.id FROM session_history h WHERE h.session_id = new.id);
    UPDATE embedded_records
    SET upto = min(upto, (
        SELECT COALESCE(min(h.id) - 1, upto) FROM session_history h WHERE h.session_id = new.id));
END;

-- Those that were passed over before, once.
DELETE FROM vectors WHERE kind = 'record' AND length(vector) = 0;
UPDATE embedded_records SET upto = 0;
