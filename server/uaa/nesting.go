package uaa

import (
	"context"
	"slices"

	"cupola/store"
	"cupola/store/cf"
)

// nesting maps the name of a group to the groups that it is a member of.
type nesting map[string][]string

func nestingOf(tx *store.Tx) (nesting, error) {
	rows, err := store.NestedGroups.All(tx)
	n := nesting{}
	for _, row := range rows {
		n[row.Member] = append(n[row.Member], row.Group)
	}
	return n, err
}

// around returns groups and all that they are members of, directly or through others.
// Groups may contain each other. The groups that every user has give no others (UAA:
// JdbcUaaUserDatabase.getAuthorities).
func (n nesting) around(groups []string) []string {
	all := slices.Clone(groups)
	for i := 0; i < len(all); i++ {
		for _, outer := range n[all[i]] {
			if !slices.Contains(all, outer) {
				all = append(all, outer)
			}
		}
	}
	return all
}

// revoking changes groups by f, and revokes the tokens of the users who lose a scope by
// that.
func revoking(tx *store.Tx, f func() error) error {
	before, err := scopesOfAll(tx)
	if err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	after, err := scopesOfAll(tx)
	if err != nil {
		return err
	}
	for guid, had := range before {
		if len(lacking(after[guid], had)) == 0 {
			continue
		}
		user, err := store.Users.Get(tx, guid)
		if err != nil {
			return err
		}
		user.TokenSalt = newSalt()
		if err := store.Users.Update(tx, user); err != nil {
			return err
		}
	}
	return nil
}

// scopesOfAll are the scopes of users beyond those that each has, by the user's GUID.
func scopesOfAll(tx *store.Tx) (map[string][]string, error) {
	n, err := nestingOf(tx)
	if err != nil {
		return nil, err
	}
	users, err := store.Users.All(tx)
	all := map[string][]string{}
	for _, user := range users {
		all[user.GUID] = n.around(user.Scopes)
	}
	return all, err
}

// changeScopes changes the scopes of a user.
func changeScopes(tx *store.Tx, guid string, change func(scopes []string) []string) error {
	user, err := store.Users.Get(tx, guid)
	if err != nil {
		return noUserWith(guid, err)
	}
	user.Scopes = change(slices.Clone(user.Scopes))
	return store.Users.Update(tx, user)
}

// scopeOf is what a user's token through a client can have.
func (u *UAA) scopeOf(ctx context.Context, user *cf.User, client *cf.Client) (scopes []string, err error) {
	err = u.store.Read(ctx, func(tx *store.Tx) error {
		n, err := nestingOf(tx)
		scopes = userScope(user, client, n)
		return err
	})
	return scopes, err
}
