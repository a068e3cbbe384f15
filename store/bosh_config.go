package store

import "cupola/store/cf"

// BOSHConfigs are the operator's configs for deployments, all versions of them.
var BOSHConfigs = boshConfigs{&Table[cf.BOSHConfig]{table{
	name: "bosh_configs", singular: "Config",
	columns: "guid, created_at, updated_at, number, type, name, content, deleted",
	fields: fieldsOf(func(v *cf.BOSHConfig, k *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt}, &v.Number, &v.Type, &v.Name, sealedBytes{k, &v.Content}, &v.Deleted}
	}),
	resource: resourceOf(func(v *cf.BOSHConfig) *cf.Resource { return &v.Resource }),
	filters:  map[string]string{"guids": "guid", "numbers": "number", "types": "type", "names": "name"},
	orders:   map[string]string{"number": "number"},
}}}

type boshConfigs struct{ *Table[cf.BOSHConfig] }

// Insert adds a version with the next number. No number is used twice.
func (t boshConfigs) Insert(tx *Tx, c *cf.BOSHConfig) error {
	if err := tx.sql.QueryRowContext(tx.ctx, "SELECT coalesce(max(number), 0) + 1 FROM bosh_configs").Scan(&c.Number); err != nil {
		return err
	}
	return t.Table.Insert(tx, c)
}

// Latest are the last versions of all types and names, without deleted ones.
func (t boshConfigs) Latest(tx *Tx) ([]*cf.BOSHConfig, error) {
	return query(tx, t.Table, "SELECT "+t.table.columns+" FROM bosh_configs WHERE deleted = 0 AND number IN"+
		" (SELECT max(number) FROM bosh_configs WHERE deleted = 0 GROUP BY type, name) ORDER BY type, name")
}
