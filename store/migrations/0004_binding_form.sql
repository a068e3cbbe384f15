-- How apps learn of their service bindings: the name of an app feature, or ''
-- for the variable VCAP_SERVICES.
ALTER TABLE apps ADD COLUMN binding_form TEXT NOT NULL DEFAULT ''
  CHECK (binding_form IN ('', 'file-based-vcap-services', 'service-binding-k8s', 'file-based-servicebinding-io'));
