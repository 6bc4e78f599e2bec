-- Few of many: the sessions that are to be left out of memory, the facts that somebody edited, and
-- those that were superseded.

CREATE INDEX idx_sessions_left_out ON sessions (space) WHERE mode <> 'enabled';
CREATE INDEX idx_fact_history_edited ON fact_history (space, created_at, fact_id)
    WHERE event = 'edited';
CREATE INDEX idx_fact_history_superseded ON fact_history (space, other_id)
    WHERE event = 'superseded';
