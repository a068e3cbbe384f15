package orgs

import (
	"cupola/server/control"
	"cupola/server/control/change"
	"cupola/server/control/quota"
	"cupola/store"
	"cupola/store/cf"
)

// holders are what quotas are given to: orgs or spaces.
type holders[T any] struct {
	table      *store.Table[T]
	word, noun string // as messages have them
	with, apps string // filters: of those with a quota, and of the processes in them
	of         func(*T) (guid, name string, quota *string)
}

var (
	limitedOrgs = holders[cf.Org]{store.Orgs, "org", "organization", "organization_quota_guids", "organization_guids",
		func(o *cf.Org) (string, string, *string) { return o.GUID, o.Name, &o.QuotaGUID }}
	limitedSpaces = holders[cf.Space]{store.Spaces, "space", "space", "space_quota_guids", "space_guids",
		func(s *cf.Space) (string, string, *string) { return s.GUID, s.Name, &s.QuotaGUID }}
)

// boundable refuses to bound the logs of a quota whose holders have apps without
// such a bound.
func (h holders[T]) boundable(c *control.Session, quotaGUID string, asked change.Field[int]) error {
	if !asked.Set || asked.Null {
		return nil
	}
	rows, _, err := h.table.List(c.Tx, store.Query{Where: map[string][]string{h.with: {quotaGUID}}, Order: "name"})
	if err != nil {
		return err
	}
	var names []string
	for _, r := range rows {
		guid, name, _ := h.of(r)
		n, err := quota.UnlimitedLogs(c.Tx, h.apps, guid)
		if err != nil {
			return err
		}
		if n > 0 {
			names = append(names, name)
		}
	}
	return quota.UnboundedIn(h.word, names)
}

// none refuses to delete a quota that is given to some; remedy says what to do.
func (h holders[T]) none(c *control.Session, quotaGUID, remedy string) error {
	n, err := h.table.Count(c.Tx, store.Query{Where: map[string][]string{h.with: {quotaGUID}}})
	if err == nil && n > 0 {
		err = cf.Unprocessable("This quota is applied to one or more %ss. %s", h.noun, remedy)
	}
	return err
}

// apply gives rows a quota, unless it bounds logs and they have apps without such a
// bound.
func (h holders[T]) apply(c *control.Session, rows []*T, quotaGUID string, l cf.QuotaLimits) error {
	if l.LogRateLimitBytes != nil {
		guids := control.GUIDs(rows, func(r *T) string { guid, _, _ := h.of(r); return guid })
		n, err := quota.UnlimitedLogs(c.Tx, h.apps, guids...)
		if err != nil || n > 0 {
			return control.OrElse(err, cf.Unprocessable("Current usage exceeds new quota values. The %s(s) being assigned this quota contain apps running with an unlimited log rate limit.", h.word))
		}
	}
	return h.give(c, rows, quotaGUID)
}

// give writes rows with another quota; "" is none.
func (h holders[T]) give(c *control.Session, rows []*T, quotaGUID string) error {
	for _, r := range rows {
		_, _, quota := h.of(r)
		*quota = quotaGUID
		if err := h.table.Update(c.Tx, r); err != nil {
			return err
		}
	}
	return nil
}
