package orgs

import (
	"cupola/server/control"
	"cupola/server/control/quota"
	"cupola/store/cf"
)

// Usage is what an org, a space or all use of what quotas bound.
type Usage = quota.Usage

// UsageOfOrg is what an org uses.
func UsageOfOrg(c *control.Session, o *cf.Org) (Usage, error) {
	return quota.UsageOf(c, quota.OfOrg(o.GUID), quota.OfOrg(o.GUID), quota.All)
}

// UsageOfSpace is what a space uses; domains are its org's.
func UsageOfSpace(c *control.Session, s *cf.Space) (Usage, error) {
	return quota.UsageOf(c, quota.OfSpace(s.GUID), quota.OfOrg(s.OrgGUID), quota.All)
}

// UsageOfAll is what all orgs use.
func UsageOfAll(c *control.Session) (Usage, error) {
	return quota.UsageOf(c, quota.Area{}, quota.Area{}, quota.All)
}
