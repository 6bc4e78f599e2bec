-- What is said after something was taken back counts again, what was said before a session was left out
-- is learned when it is back, and a text that was changed is not one of before.

-- Of a statement that was taken back in a session (the rows without a fact): up to which record the
-- session does not bring it back; none: at all.
ALTER TABLE fact_history ADD COLUMN upto BIGINT;
CREATE INDEX idx_fact_history_unsaid ON fact_history (space, other_id) WHERE fact_id = '';

-- Its last record when its mode was last enabled; none: it is, or never was.
ALTER TABLE sessions ADD COLUMN left_seq BIGINT;

-- When it was made to follow a fact; none: it says what it was generated to say.
ALTER TABLE extractions ADD COLUMN reworded_at BIGINT;

SET LOCAL recollect.operator = 'on';
-- What was taken back before: up to what has been said by now.
INSERT INTO fact_history (
    space, fact_id, event, content, content_key, made_by, other_id, created_at, upto)
SELECT DISTINCT h.space, '', 'unsaid', '', h.content_key, h.made_by, o.session_id, h.created_at,
    s.last_seq
FROM fact_history h JOIN facts f ON f.space = h.space AND f.id = h.fact_id
JOIN fact_sources o ON o.fact_key = f.key
LEFT JOIN sessions s ON s.space = h.space AND s.id = o.session_id
WHERE h.content_key IS NOT NULL AND h.fact_id <> ''
ORDER BY h.created_at, o.session_id;
UPDATE fact_history SET upto = 0 WHERE content_key IS NOT NULL AND fact_id <> '';
UPDATE fact_history
SET upto = (SELECT s.last_seq FROM sessions s WHERE s.id = other_id AND s.space = fact_history.space)
WHERE fact_id = '' AND event = 'forgotten';

UPDATE extractions SET reworded_at = (
    SELECT max(h.created_at) FROM fact_history h
    WHERE h.space = extractions.space AND h.fact_id = '' AND h.other_id = extractions.session_id
        AND h.created_at > extractions.generated_at)
WHERE session_id IN (SELECT h.other_id FROM fact_history h WHERE h.fact_id = '');
