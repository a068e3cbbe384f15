package store

import (
	"cupola/runtime/guid"
	"cupola/runtime/lrp"
	"cupola/store/cf"
)

// BBSDesired is a DesiredLRP that a client of the BBS asked for.
type BBSDesired struct {
	ProcessGUID string
	Domain      string
	Instances   int
	Tag         lrp.Tag
	Message     []byte // Diego's protobuf message
}

// BBSDesireds are the DesiredLRPs of the BBS.
var BBSDesireds = bbsDesireds{&Table[BBSDesired]{table{
	name: "bbs_desired_lrps", singular: "Desired LRP",
	columns: "process_guid, domain, instances, epoch, revision, message",
	fields: fieldsOf(func(v *BBSDesired, k *sealer) []any {
		return []any{&v.ProcessGUID, &v.Domain, &v.Instances, &v.Tag.Epoch, &v.Tag.Index, sealedBytes{k, &v.Message}}
	}),
	resource: resourceOf(func(*BBSDesired) *cf.Resource { return nil }),
	filters:  map[string]string{"guids": "process_guid", "domains": "domain", "epochs": "epoch"},
}}}

type bbsDesireds struct{ *Table[BBSDesired] }

// BBSDesiredTags are the tags of the rows alone, which take little time to read:
// every write of a row changes its tag. running leaves those out that have no
// instances.
var BBSDesiredTags = &Table[lrp.Tag]{table{
	name: BBSDesireds.table.name, singular: BBSDesireds.table.singular,
	columns:  "epoch, revision",
	fields:   fieldsOf(func(v *lrp.Tag, _ *sealer) []any { return []any{&v.Epoch, &v.Index} }),
	resource: resourceOf(func(*lrp.Tag) *cf.Resource { return nil }),
	filters:  map[string]string{"guids": "process_guid", "domains": "domain", "running": "? IS NOT NULL AND instances > 0"},
	accepts: map[string]func([]string) predicate{"running": func([]string) predicate {
		return predicate{column: "instances", accept: func(v any) bool { return v != int64(0) }}
	}},
}}

// BBSDesiredKeys are the rows without their messages.
var BBSDesiredKeys = &Table[BBSDesired]{table{
	name: BBSDesireds.table.name, singular: BBSDesireds.table.singular,
	columns: "process_guid, domain, instances, epoch, revision",
	fields: fieldsOf(func(v *BBSDesired, _ *sealer) []any {
		return []any{&v.ProcessGUID, &v.Domain, &v.Instances, &v.Tag.Epoch, &v.Tag.Index}
	}),
	resource: resourceOf(func(*BBSDesired) *cf.Resource { return nil }),
	filters:  map[string]string{"guids": "process_guid", "domains": "domain"},
}}

// Insert adds a row; IsTaken when there is one of its GUID. It sets the tag, and
// message is made once the tag is known.
func (t bbsDesireds) Insert(tx *Tx, d *BBSDesired, message func(lrp.Tag) ([]byte, error)) (err error) {
	d.Tag = lrp.Tag{Epoch: guid.New()}
	if d.Message, err = message(d.Tag); err != nil {
		return err
	}
	if err := t.Table.Insert(tx, d); err != nil {
		return err
	}
	tx.note(Change{After: d})
	return nil
}

// Update writes d over the row was that was read in this transaction. It counts
// the tag, and message is made once that is known.
func (t bbsDesireds) Update(tx *Tx, was, d *BBSDesired, message func(lrp.Tag) ([]byte, error)) (err error) {
	d.Tag = lrp.Tag{Epoch: was.Tag.Epoch, Index: was.Tag.Index + 1}
	if d.Message, err = message(d.Tag); err != nil {
		return err
	}
	if err := t.Table.Update(tx, d); err != nil {
		return err
	}
	tx.note(Change{Before: was, After: d})
	return nil
}

// Delete removes a row and reports whether there was one.
func (t bbsDesireds) Delete(tx *Tx, processGUID string) (bool, error) {
	gone, err := change(tx, t.Table, "DELETE FROM bbs_desired_lrps WHERE process_guid = ?", processGUID)
	for _, d := range gone {
		tx.note(Change{Before: d})
	}
	return len(gone) > 0, err
}
