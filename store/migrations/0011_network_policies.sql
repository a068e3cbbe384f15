-- Which apps may connect to which others, inside: the policy server's rows.
CREATE TABLE network_policies (
  id INTEGER PRIMARY KEY,
  source TEXT NOT NULL REFERENCES apps(guid) ON DELETE CASCADE,
  destination TEXT NOT NULL REFERENCES apps(guid) ON DELETE CASCADE,
  protocol TEXT NOT NULL CHECK (protocol IN ('tcp','udp')),
  first_port INTEGER NOT NULL CHECK (first_port BETWEEN 1 AND 65535),
  last_port INTEGER NOT NULL CHECK (last_port BETWEEN first_port AND 65535),
  UNIQUE (source, destination, protocol, first_port, last_port)
) STRICT;
CREATE INDEX network_policies_destination ON network_policies(destination);
