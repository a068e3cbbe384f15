-- Whose turn it is is looked up by broker; "" for operations of earlier releases.
ALTER TABLE broker_operations ADD COLUMN broker_guid TEXT NOT NULL DEFAULT '';
