-- How many routes a space has, and how many of them have a port: quotas ask before
-- and after each new route, and to count thousands of rows takes longer than to add one.
-- A space without routes has no row.
CREATE TABLE space_routes (
  space_guid TEXT NOT NULL PRIMARY KEY, routes INTEGER NOT NULL, ports INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO space_routes SELECT space_guid, count(*), sum(port > 0) FROM routes GROUP BY space_guid;

CREATE TRIGGER space_routes_insert AFTER INSERT ON routes BEGIN
  INSERT INTO space_routes VALUES (new.space_guid, 1, new.port > 0)
    ON CONFLICT (space_guid) DO UPDATE SET routes = routes + 1, ports = ports + excluded.ports;
END;
CREATE TRIGGER space_routes_update AFTER UPDATE OF space_guid, port ON routes WHEN old.space_guid <> new.space_guid OR (old.port > 0) <> (new.port > 0) BEGIN
  UPDATE space_routes SET routes = routes - 1, ports = ports - (old.port > 0) WHERE space_guid = old.space_guid;
  INSERT INTO space_routes VALUES (new.space_guid, 1, new.port > 0)
    ON CONFLICT (space_guid) DO UPDATE SET routes = routes + 1, ports = ports + excluded.ports;
  DELETE FROM space_routes WHERE space_guid = old.space_guid AND routes = 0;
END;
CREATE TRIGGER space_routes_delete AFTER DELETE ON routes BEGIN
  UPDATE space_routes SET routes = routes - 1, ports = ports - (old.port > 0) WHERE space_guid = old.space_guid;
  DELETE FROM space_routes WHERE space_guid = old.space_guid AND routes = 0;
END;
