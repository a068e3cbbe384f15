-- The form of the binding files that a process was started with. Until now, all processes of an app had the app's.
ALTER TABLE processes ADD COLUMN binding_form TEXT NOT NULL DEFAULT '';
UPDATE processes SET binding_form = (SELECT binding_form FROM apps WHERE apps.guid = app_guid);
