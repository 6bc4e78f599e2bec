-- To be shown is not to be used: it is counted by itself, and raises no usage.

ALTER TABLE usages DROP CONSTRAINT usages_kind_check;
ALTER TABLE facts ADD COLUMN shown_count BIGINT NOT NULL DEFAULT 0;

SET LOCAL recollect.operator = 'on';
UPDATE usages SET kind = 'shown' WHERE kind = 'injected';
ALTER TABLE usages ADD CONSTRAINT usages_kind_check CHECK (kind IN ('shown', 'opened', 'cited'));

-- What was shown had counted as a use. It is taken off again as far as single uses are still kept.
UPDATE facts SET
    shown_count = u.shown,
    usage_count = CASE WHEN usage_count > u.shown THEN usage_count - u.shown ELSE 0 END,
    last_usage = CASE WHEN usage_count > u.shown THEN COALESCE(u.used_at, u.first_at) END
FROM (
    SELECT n.space, n.entry_id, count(CASE n.kind WHEN 'shown' THEN 1 END) AS shown,
        max(CASE WHEN n.kind <> 'shown' THEN n.created_at END) AS used_at,
        min(n.created_at) AS first_at
    FROM usages n WHERE n.entry_kind = 'fact' GROUP BY n.space, n.entry_id) u
WHERE facts.space = u.space AND facts.id = u.entry_id AND u.shown > 0;

UPDATE extractions SET
    usage_count = CASE WHEN usage_count > u.shown THEN usage_count - u.shown ELSE 0 END,
    last_usage = CASE WHEN usage_count > u.shown THEN COALESCE(u.used_at, u.first_at) END
FROM (
    SELECT n.space, n.session_id, count(CASE n.kind WHEN 'shown' THEN 1 END) AS shown,
        max(CASE WHEN n.kind <> 'shown' THEN n.created_at END) AS used_at,
        min(n.created_at) AS first_at
    FROM (
        SELECT a.space, a.session_id, a.kind, a.created_at FROM usages a
        WHERE a.entry_kind <> 'fact' AND a.session_id IS NOT NULL
        UNION ALL
        SELECT a.space, o.session_id, a.kind, a.created_at FROM usages a
        JOIN facts f ON f.space = a.space AND f.id = a.entry_id
        JOIN (SELECT DISTINCT fact_key, session_id FROM fact_sources) o ON o.fact_key = f.key
        WHERE a.entry_kind = 'fact') n
    GROUP BY n.space, n.session_id) u
WHERE extractions.space = u.space AND extractions.session_id = u.session_id AND u.shown > 0;
