package policies

import (
	"slices"

	"cupola/server/authz"
	"cupola/server/control"
	"cupola/store"
	"cupola/store/cf"
)

// List are the policies that the filters accept, between apps that the actor may have
// policies for.
func List(c *control.Session, where map[string][]string) ([]*cf.NetworkPolicy, error) {
	rows, err := store.NetworkPolicies.Where(c.Tx, where)
	if err != nil {
		return nil, err
	}
	var guids []string
	for _, p := range rows {
		guids = append(guids, p.Source, p.Destination)
	}
	may, _, err := developed(c, guids)
	return control.Without(rows, func(p *cf.NetworkPolicy) bool { return !may[p.Source] || !may[p.Destination] }), err
}

// Add lets the sources connect to the destinations.
func Add(c *control.Session, list []cf.NetworkPolicy) error {
	if err := permit(c, list, true); err != nil {
		return err
	}
	if err := within(c, list); err != nil {
		return err
	}
	return each(c.Tx, list, store.NetworkPolicies.Add)
}

// Remove takes policies away, those that are there.
func Remove(c *control.Session, list []cf.NetworkPolicy) error {
	if err := permit(c, list, false); err != nil {
		return err
	}
	return each(c.Tx, list, store.NetworkPolicies.Remove)
}

func each(tx *store.Tx, list []cf.NetworkPolicy, f func(*store.Tx, cf.NetworkPolicy) error) error {
	for _, p := range list {
		if err := f(tx, p); err != nil {
			return err
		}
	}
	return nil
}

// MaxPolicies is how many policies one who is not an admin may have for a source:
// the policy server's max_policies_per_app_source.
const MaxPolicies = 150

// networkAdmin reports whether the actor may have any policy.
func networkAdmin(c *control.Session) bool {
	return c.Actor.Admin || slices.Contains(c.Scopes, "network.admin")
}

// developed are the apps among those of the GUIDs that the actor may have
// policies for, and how many of the GUIDs are apps' at all.
func developed(c *control.Session, guids []string) (may map[string]bool, known int, err error) {
	apps, err := store.Apps.By(c.Tx, "guids", guids...)
	if err != nil {
		return nil, 0, err
	}
	may = map[string]bool{}
	for _, a := range apps {
		may[a.GUID] = networkAdmin(c) || c.Actor.May(c.Rule, authz.Place{SpaceGUID: a.SpaceGUID})
	}
	return may, len(apps), nil
}

func appsOf(list []cf.NetworkPolicy) (guids []string) {
	for _, p := range list {
		guids = append(guids, p.Source, p.Destination)
	}
	slices.Sort(guids)
	return slices.Compact(guids)
}

// permit checks that the actor is a developer of all apps of the policies. With all, each
// app must exist; without it, apps that no longer exist do not count.
func permit(c *control.Session, list []cf.NetworkPolicy, all bool) error {
	c.Checked = true
	guids := appsOf(list)
	may, known, err := developed(c, guids)
	if err != nil {
		return err
	}
	denied := all && known < len(guids)
	for _, ok := range may {
		denied = denied || !ok
	}
	if denied {
		return cf.Errorf(cf.NotAuthorized, "one or more applications cannot be found or accessed")
	}
	return nil
}

// within counts, as the policy server does, what is asked for on top of
// what is there, even when it is the same.
func within(c *control.Session, list []cf.NetworkPolicy) error {
	if networkAdmin(c) {
		return nil
	}
	count := map[string]int{}
	for _, p := range list {
		count[p.Source]++
	}
	for source, asked := range count {
		n, err := store.NetworkPolicies.Count(c.Tx, store.Query{Where: map[string][]string{"sources": {source}}})
		if err != nil {
			return err
		}
		if n+asked > MaxPolicies {
			return cf.Errorf(cf.NotAuthorized, "policy quota exceeded")
		}
	}
	return nil
}
