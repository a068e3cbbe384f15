package server

import (
	"fmt"
	"slices"

	"cupola/rootfs/reference"
	"cupola/runtime/lrp"
	"cupola/server/bbs/bbsrows"
	"cupola/store"
)

// bbsUse is something that clients of the BBS want to run, with the root
// filesystem it names.
type bbsUse struct{ who, rootFS string }

// bbsUses are all LRPs of the BBS, its tasks that have not ended, and what BOSH
// deployments run on.
func bbsUses(tx *store.Tx) (uses []bbsUse, err error) {
	desired, err := store.BBSDesireds.Where(tx, nil)
	if err != nil {
		return nil, err
	}
	for _, row := range desired {
		d, err := bbsrows.Decode(row)
		if err != nil {
			return nil, err
		}
		uses = append(uses, bbsUse{"LRP " + row.ProcessGUID, d.Message.RootFs})
	}
	tasks, err := store.BBSTasks.By(tx, "states", string(lrp.TaskPending), string(lrp.TaskRunning))
	if err != nil {
		return nil, err
	}
	for _, row := range tasks {
		d, err := bbsrows.DecodeTask(row)
		if err != nil {
			return nil, err
		}
		uses = append(uses, bbsUse{"task " + row.GUID, d.RootFs})
	}
	deployed, err := boshUses(tx)
	return append(uses, deployed...), err
}

// bbsUsers says who of the BBS needs a stack of a name, or an image with a
// digest; the other is "".
func (l localStacks) bbsUsers(tx *store.Tx, stack, digest string) (who []string, err error) {
	uses, err := bbsUses(tx)
	if err != nil {
		return nil, err
	}
	names := []string{stack}
	for _, a := range l.aliases() {
		if a.of == stack {
			names = append(names, a.name)
		}
	}
	digests := map[string]string{} // by root filesystem
	for _, u := range uses {
		ref, err := reference.Parse(u.rootFS)
		switch {
		case err != nil: // nothing runs on it
		case ref.Scheme == reference.SchemePreloaded:
			if stack != "" && slices.Contains(names, ref.Name) {
				who = append(who, u.who)
			}
		case digest != "" && l.digest(digests, u.rootFS) == digest:
			who = append(who, u.who)
		}
	}
	return who, nil
}

// digest is that of an image in the cache, "" for one that is not there; known
// keeps what was found.
func (l localStacks) digest(known map[string]string, rootFS string) string {
	found, ok := known[rootFS]
	if !ok {
		if i, err := l.roots.Images.Find(rootFS); err == nil {
			found = i.Digest
		}
		known[rootFS] = found
	}
	return found
}

// pinByBBS adds the images that the BBS has something run on.
func (l localStacks) pinByBBS(tx *store.Tx, pinned map[string]bool) error {
	uses, err := bbsUses(tx)
	digests := map[string]string{}
	for _, u := range uses {
		if ref, err := reference.Parse(u.rootFS); err == nil && ref.Scheme != reference.SchemePreloaded {
			pinned[l.digest(digests, u.rootFS)] = true
		}
	}
	return err
}

// stackUsers lists who needs a stack: apps, then what is of the BBS.
func (l localStacks) stackUsers(tx *store.Tx, name string) ([]string, error) {
	apps, err := tx.StackUsers(name)
	if err != nil {
		return nil, err
	}
	others, err := l.bbsUsers(tx, name, "")
	return append(apps, others...), err
}

// imageUsers lists who needs an image, as stackUsers does.
func (l localStacks) imageUsers(tx *store.Tx, digest string) ([]string, error) {
	apps, err := tx.ImageUsers(digest)
	if err != nil {
		return nil, err
	}
	others, err := l.bbsUsers(tx, "", digest)
	return append(apps, others...), err
}

// errUsedByBBS says what of the BBS needs something.
func errUsedByBBS(what, users string) error {
	return fmt.Errorf("%s is used through the BBS API: %s; remove that first", what, users)
}
