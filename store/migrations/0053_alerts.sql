-- What is wrong, by the rules of alerts: one row for each rule and subject from when it was first seen until it is over.
CREATE TABLE alerts (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  rule TEXT NOT NULL, subject TEXT NOT NULL, name TEXT NOT NULL, severity TEXT NOT NULL, text TEXT NOT NULL, mend TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('PENDING','FIRING','RESOLVED')),
  fired_at INTEGER NOT NULL, resolved_at INTEGER NOT NULL, absent_since INTEGER NOT NULL, -- 0: not yet
  announced INTEGER NOT NULL, repeats INTEGER NOT NULL, repeat_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX alerts_open ON alerts(rule, subject) WHERE state != 'RESOLVED';
CREATE INDEX alerts_state ON alerts(state, resolved_at);

-- Where alerts are sent. The settings hold addresses and passwords, sealed.
CREATE TABLE alert_targets (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  name TEXT NOT NULL UNIQUE, kind TEXT NOT NULL CHECK (kind IN ('webhook','mail','command')), settings BLOB NOT NULL,
  sent_at INTEGER NOT NULL, failing_since INTEGER NOT NULL, failure TEXT NOT NULL, tries INTEGER NOT NULL, try_at INTEGER NOT NULL
) STRICT;

-- What was not sent to a target yet. It is written with the change of the alert, and deleted when the target has taken it.
CREATE TABLE alert_notices (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  target_guid TEXT NOT NULL REFERENCES alert_targets(guid) ON DELETE CASCADE, notice TEXT NOT NULL
) STRICT;
CREATE INDEX alert_notices_target ON alert_notices(target_guid);

-- Alerts that are not sent for a while: of a rule, of a subject, or all ('' matches all).
CREATE TABLE alert_silences (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  rule TEXT NOT NULL, name TEXT NOT NULL, comment TEXT NOT NULL, ends_at INTEGER NOT NULL
) STRICT;
