-- Which apps routes lead to, by app: of thousands of routes the few of some apps
-- are found without reading the destinations of all.
CREATE TABLE route_apps (
  app_guid TEXT NOT NULL, route_guid TEXT NOT NULL,
  PRIMARY KEY (app_guid, route_guid)
) STRICT, WITHOUT ROWID;
CREATE INDEX route_apps_route ON route_apps(route_guid);

INSERT INTO route_apps SELECT DISTINCT d.value ->> 'app_guid', r.guid FROM routes r, json_each(r.destinations) d WHERE d.value ->> 'app_guid' IS NOT NULL;

CREATE TRIGGER route_apps_insert AFTER INSERT ON routes BEGIN
  INSERT INTO route_apps SELECT DISTINCT value ->> 'app_guid', new.guid FROM json_each(new.destinations) WHERE value ->> 'app_guid' IS NOT NULL;
END;
CREATE TRIGGER route_apps_update AFTER UPDATE OF destinations ON routes WHEN old.destinations <> new.destinations BEGIN
  DELETE FROM route_apps WHERE route_guid = old.guid;
  INSERT INTO route_apps SELECT DISTINCT value ->> 'app_guid', new.guid FROM json_each(new.destinations) WHERE value ->> 'app_guid' IS NOT NULL;
END;
CREATE TRIGGER route_apps_delete AFTER DELETE ON routes BEGIN
  DELETE FROM route_apps WHERE route_guid = old.guid;
END;
