-- Pieces that several queries share, written {like_this} in them.

-- fragment: session
s.id, s.space, k.key, k.agent_id, s.rotation, s.source, s.project, s.parent, s.ephemeral, s.mode, s.remembered,
s.last_seq, s.invalidated_at, s.processed_until, s.marked_at, s.marked_by, s.created_at,
s.last_activity_at, s.ended_at, s.ended_by, s.pass, s.forgotten_at

-- fragment: record
h.session_id, h.seq, h.role, h.content, h.name, h.body, h.said_at, h.created_at, h.append_key,
h.metadata

-- fragment: current
(SELECT k.session_id FROM session_keys k WHERE k.space = :space AND k.id = :key_id)

-- fragment: over_threshold
(remembered AND CASE WHEN :by_turns
    THEN unprocessed_turns + :turns - 1  -- the turn that has just begun is not complete
    ELSE last_seq + :count - COALESCE(processed_until, 0) END > :threshold)

-- fragment: new_cursor
NULLIF(CASE
    WHEN :processed_until < COALESCE(processed_until, 0) THEN processed_until
    WHEN :processed_until > last_seq THEN last_seq
    ELSE :processed_until END, 0)

-- fragment: job
j.id, j.space, j.kind, j.key, j.state, j.first_due_at, j.due_at, j.owner, j.lease_expires_at,
j.token, j.failures, j.takeovers, j.last_error, j.last_error_at, j.finished_at, j.pauses

-- fragment: is_covered
(:is_last AND (invalidated_at = :claimed_mark OR invalidated_at <= :upto))

-- fragment: any_of (sqlite)
-- A query for any of the words, given as JSON, in entries of a space.
COALESCE((
    SELECT group_concat('"' || s.number || 'z' || w.value || '"', ' OR ')
    FROM json_each(:words) w, spaces s WHERE s.space = :space), '""')

-- fragment: any_of (postgres)
(SELECT to_tsquery('recollect_words', string_agg(
    '''z' || translate(left(md5(:space), 8), 'abcdef', 'bcdfgh') || 'z' || w || '''', ' | '))
FROM json_array_elements_text(CAST(:words AS json)) w)

-- fragment: any_phrase (sqlite)
-- A query for any of the phrases, given as JSON, in entries of a space.
COALESCE((
    SELECT group_concat(
        '"' || s.number || 'z' || replace(w.value, ' ', ' ' || s.number || 'z') || '"', ' OR ')
    FROM json_each(:words) w, spaces s WHERE s.space = :space), '""')

-- fragment: any_phrase (postgres)
(SELECT to_tsquery('recollect_words', string_agg(
    '(' || p.prefix || replace(w, ' ', ''' <-> ' || p.prefix) || ''')', ' | '))
FROM json_array_elements_text(CAST(:words AS json)) w CROSS JOIN (
    SELECT '''z' || translate(left(md5(:space), 8), 'abcdef', 'bcdfgh') || 'z' AS prefix) p)

-- fragment: the_word (sqlite)
-- A query for one word in entries of a space.
COALESCE((SELECT '"' || s.number || 'z' || :word || '"' FROM spaces s WHERE s.space = :space), '""')

-- fragment: now (sqlite)
COALESCE(:now, CAST(unixepoch('subsec') * 1000000 AS INTEGER))

-- fragment: now (postgres)
COALESCE(
    CAST(:now AS BIGINT), CAST(EXTRACT(epoch FROM clock_timestamp()) * 1000000 AS BIGINT))

-- fragment: to_change (sqlite)

-- fragment: to_change (postgres)
FOR UPDATE

-- fragment: to_stay (sqlite)

-- fragment: to_stay (postgres)
-- Erasing what was found waits for this transaction; nothing else does.
FOR KEY SHARE
