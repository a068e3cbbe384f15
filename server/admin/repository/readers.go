package repository

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"filippo.io/age"
)

// readersID is what a Snapshot's Readers has for its recipients.
func (r *Repository) readersID(recipients []age.Recipient) string {
	var keys []string
	for _, one := range recipients {
		keys = append(keys, fmt.Sprint(one))
	}
	slices.Sort(keys)
	return hex.EncodeToString(digest(r.key, []byte("recipients "+strings.Join(keys, " ")))[:16])
}

// isApart reports whether the next snapshot shares chunks only with those for the same recipients: theirs alone can be read by its own. The first
// ones of an earlier cupola do not say whom they are for; what follows them has their chunks until the recipients change.
func (r *Repository) isApart(ctx context.Context, names []string, readers string) bool {
	if r.journal || len(names) == 0 {
		return true
	}
	last, err := r.Find(ctx, names[len(names)-1])
	return err != nil || last.Apart || last.Readers != "" && last.Readers != readers
}
