package stack

import (
	"fmt"
	"slices"

	"cupola/rootfs/reference"
	"cupola/runtime/lrp"
	"cupola/server/bbs/bbsrows"
	"cupola/server/bosh/agent"
	"cupola/server/databroker"
	"cupola/store"
)

// use is something other than an app that is to run, with the root
// filesystem it names.
type use struct{ who, rootFS string }

// usesOf lists all LRPs of the BBS, its tasks that have not ended, and what BOSH
// deployments and the instances of operators' service files run on.
func usesOf(tx *store.Tx) (all []use, err error) {
	desired, err := store.BBSDesireds.Where(tx, nil)
	if err != nil {
		return nil, err
	}
	for _, row := range desired {
		d, err := bbsrows.Decode(row)
		if err != nil {
			return nil, err
		}
		all = append(all, use{"LRP " + row.ProcessGUID, d.Message.RootFs})
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
		all = append(all, use{"task " + row.GUID, d.RootFs})
	}
	deployed, err := boshUses(tx)
	if err != nil {
		return nil, err
	}
	instances, err := databroker.RootFSes(tx)
	for _, i := range instances {
		all = append(all, use{"service instance " + i.GUID, i.RootFS})
	}
	return append(all, deployed...), err
}

// otherUsers lists what besides apps needs a stack of a name, or an image with a
// digest; the other is "".
func (l *Library) otherUsers(tx *store.Tx, stack, digest string) (who []string, err error) {
	uses, err := usesOf(tx)
	if err != nil {
		return nil, err
	}
	names := []string{stack}
	for _, a := range l.Machine.Aliases() {
		if a.Of == stack {
			names = append(names, a.Name)
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
func (l *Library) digest(known map[string]string, rootFS string) string {
	found, ok := known[rootFS]
	if !ok {
		if i, err := l.Roots.Images.Find(rootFS); err == nil {
			found = i.Digest
		}
		known[rootFS] = found
	}
	return found
}

// pinByOthers adds the images that something other than an app runs on.
func (l *Library) pinByOthers(tx *store.Tx, pinned map[string]bool) error {
	uses, err := usesOf(tx)
	digests := map[string]string{}
	for _, u := range uses {
		if ref, err := reference.Parse(u.rootFS); err == nil && ref.Scheme != reference.SchemePreloaded {
			pinned[l.digest(digests, u.rootFS)] = true
		}
	}
	return err
}

// stackUsers lists who needs a stack: apps, then LRPs and tasks of the BBS.
func (l *Library) stackUsers(tx *store.Tx, name string) ([]string, error) {
	apps, err := tx.StackUsers(name)
	if err != nil {
		return nil, err
	}
	others, err := l.otherUsers(tx, name, "")
	return append(apps, others...), err
}

// imageUsers lists who needs an image, as stackUsers does.
func (l *Library) imageUsers(tx *store.Tx, digest string) ([]string, error) {
	apps, err := tx.ImageUsers(digest)
	if err != nil {
		return nil, err
	}
	others, err := l.otherUsers(tx, "", digest)
	return append(apps, others...), err
}

// errUsedByBBS says what of the BBS needs something.
func errUsedByBBS(what, users string) error {
	return fmt.Errorf("%s is used through the BBS API: %s; remove that first", what, users)
}

// boshUses are what deployments run on.
func boshUses(tx *store.Tx) (uses []use, err error) {
	specs, err := store.BOSHSpecs.All(tx)
	if err != nil {
		return nil, err
	}
	seen := map[use]bool{}
	for _, row := range specs {
		spec, err := agent.Decode(row.Text)
		if err != nil {
			return nil, err
		}
		for _, j := range spec.Jobs {
			if u := (use{"deployment " + spec.Deployment, j.Image}); !seen[u] {
				seen[u] = true
				uses = append(uses, u)
			}
		}
	}
	return uses, nil
}
