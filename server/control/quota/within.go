package quota

import (
	"cupola/server/control"
	"cupola/store"
	"cupola/store/cf"
)

// Budget is a quota at work: what its org or space used before a change, and
// after it.
type Budget struct {
	Limits        cf.QuotaLimits
	area          Area
	name          string // of the org or space
	before, after Usage
}

// Budgets are the quotas that hold in a space, or in an org where the space is
// nil.
func Budgets(tx *store.Tx, org *cf.Org, space *cf.Space) (list []*Budget, err error) {
	q, err := store.OrgQuotas.Get(tx, org.QuotaGUID)
	if err == nil {
		list = append(list, &Budget{Limits: q.Limits, area: OfOrg(org.GUID), name: org.Name})
	}
	if err != nil && !store.IsNotFound(err) || space == nil || space.QuotaGUID == "" {
		return list, control.IfFound(err)
	}
	s, err := store.SpaceQuotas.Get(tx, space.QuotaGUID)
	if err != nil {
		return nil, err
	}
	return append(list, &Budget{Limits: s.Limits, area: OfSpace(space.GUID), name: space.Name}), nil
}

// Within makes a change in a space, and refuses it if it increases the usage of the
// space or its org beyond a quota. One that uses too
// much already may still use less. The change can only use more of what is named.
func Within(c *control.Session, spaceGUID string, of Kind, change func() error) error {
	space, err := store.Spaces.Get(c.Tx, spaceGUID)
	if err != nil {
		return err
	}
	org, err := store.Orgs.Get(c.Tx, space.OrgGUID)
	if err != nil {
		return err
	}
	return within(c, org, space, of, change)
}

// WithinOrg is Within for resources outside of spaces. Without an org (""), there
// is no quota.
func WithinOrg(c *control.Session, orgGUID string, of Kind, change func() error) error {
	if orgGUID == "" {
		return change()
	}
	org, err := store.Orgs.Get(c.Tx, orgGUID)
	if err != nil {
		return err
	}
	return within(c, org, nil, of, change)
}

func within(c *control.Session, org *cf.Org, space *cf.Space, of Kind, change func() error) error {
	list, err := Budgets(c.Tx, org, space)
	if err != nil {
		return err
	}
	usage := func(b *Budget) (Usage, error) { return usageNow(c, b.area, OfOrg(org.GUID), of&limited(b.Limits)) }
	for _, b := range list {
		if b.before, err = usage(b); err != nil {
			return err
		}
	}
	if err := change(); err != nil {
		return err
	}
	for _, b := range list {
		if b.after, err = usage(b); err != nil {
			return err
		}
	}
	return control.Invalid(exceeded(list))
}

// WithinProcesses is Within for changes of processes by what has no session. awakeOnly is
// the platform's QuotaAwakeOnly.
func WithinProcesses(awakeOnly bool) func(tx *store.Tx, spaceGUID string, change func() error) error {
	p := &control.Platform{QuotaAwakeOnly: awakeOnly}
	return func(tx *store.Tx, spaceGUID string, change func() error) error {
		return Within(&control.Session{Tx: tx, Platform: p}, spaceGUID, Processes, change)
	}
}
