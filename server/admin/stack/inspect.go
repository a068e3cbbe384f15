package stack

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"cupola/rootfs/image"
	"cupola/rootfs/stack"
	"cupola/rootfs/system"
	"cupola/store"
)

// Detail describes a stack or an image in full.
type Detail struct {
	Stack    *Info      `json:",omitempty"`
	Image    *ImageInfo `json:",omitempty"` // that the stack is made of, or that was asked for
	Users    []string   // what needs it: apps as org/space/app, and "LRP guid" and "task guid" of the BBS
	Warnings []string   // what to expect of it on this machine
}

// Inspect describes a stack, or an image named as for image.
func (l *Library) Inspect(ctx context.Context, in NameRequest) (d Detail, err error) {
	name := in.Name
	s, ok := l.Roots.Stacks.Get(name)
	if ok {
		info := l.info(s)
		d.Stack = &info
	}
	if !ok || s.Kind == stack.KindImage {
		image, err := l.image(ctx, name)
		if err != nil {
			return d, err
		}
		d.Image, s.Kernel = &image, image.Kernel
	}
	if w := system.KernelWarning(s.Kernel); w != "" {
		d.Warnings = append(d.Warnings, w)
	}
	return d, l.Store.Read(ctx, func(tx *store.Tx) error {
		if ok {
			d.Users, err = l.stackUsers(tx, name)
		} else {
			d.Users, err = l.imageUsers(tx, d.Image.Digest)
		}
		return err
	})
}

// Remove removes a stack, or else an image, that neither an app nor the BBS uses.
func (l *Library) Remove(ctx context.Context, in NameRequest) (image.Removed, error) {
	name := in.Name
	l.GC.Lock()
	defer l.GC.Unlock()
	if _, ok := l.Roots.Stacks.Get(name); ok {
		return image.Removed{}, l.removeStack(ctx, name)
	}
	i, err := l.Roots.Images.Find(withScheme(name))
	if errors.Is(err, image.ErrNotPulled) {
		return image.Removed{}, errNothingCalled(name)
	}
	if err != nil {
		return image.Removed{}, err
	}
	users, err := l.listed(ctx, func(tx *store.Tx) ([]string, error) { return tx.ImageUsers(i.Digest) })
	if err != nil {
		return image.Removed{}, err
	}
	if users != "" {
		return image.Removed{}, fmt.Errorf("image %s is used by apps: %s; delete their droplets, or the apps, first", i.Reference, users)
	}
	users, err = l.listed(ctx, func(tx *store.Tx) ([]string, error) { return l.otherUsers(tx, "", i.Digest) })
	if err != nil {
		return image.Removed{}, err
	}
	if users != "" {
		return image.Removed{}, errUsedByBBS("image "+i.Reference, users)
	}
	return l.Roots.Images.Remove(ctx, i.Digest)
}

func (l *Library) removeStack(ctx context.Context, name string) error {
	users, err := l.listed(ctx, func(tx *store.Tx) ([]string, error) { return tx.StackUsers(name) })
	if err != nil {
		return err
	}
	if users != "" {
		return fmt.Errorf("stack %q is used by apps: %s; push them to another one first", name, users)
	}
	users, err = l.listed(ctx, func(tx *store.Tx) ([]string, error) { return l.otherUsers(tx, name, "") })
	if err != nil {
		return err
	}
	if users != "" {
		return errUsedByBBS("stack "+name, users)
	}
	if err := l.Roots.Stacks.Remove(name); err != nil {
		return err
	}
	err = l.Store.Write(ctx, func(tx *store.Tx) error {
		rows, err := store.Stacks.By(tx, "names", name)
		if err != nil {
			return err
		}
		for _, s := range rows {
			if err := store.Stacks.Delete(tx, s.GUID); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, l.Offer(ctx))
}

// ForAPI is the stacks of a daemon as its API wants them.
type ForAPI struct{ *Library }

// Users lists what of the BBS needs a stack.
func (a ForAPI) Users(tx *store.Tx, name string) ([]string, error) {
	all, err := a.otherUsers(tx, name, "")
	return all[:min(len(all), maxUsers)], err
}

// Remove removes the root filesystem of a stack, if this machine has it.
func (a ForAPI) Remove(name string) error {
	if _, ok := a.Roots.Stacks.Get(name); !ok {
		return nil
	}
	return a.Roots.Stacks.Remove(name)
}

// Offer brings rows and cells up to the stacks that are left. The next start makes
// up for what fails.
func (a ForAPI) Offer() {
	ctx := context.Background()
	if err := a.Library.Offer(ctx); err != nil {
		a.Log.ErrorContext(ctx, "stacks were not offered again", "err", err)
	}
}

const maxUsers = 50 // that a refusal lists

// listed lists those that find finds, for people.
func (l *Library) listed(ctx context.Context, find func(*store.Tx) ([]string, error)) (text string, err error) {
	err = l.Store.Read(ctx, func(tx *store.Tx) error {
		all, err := find(tx)
		text = strings.Join(all[:min(len(all), maxUsers)], ", ")
		if more := len(all) - maxUsers; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		return err
	})
	return text, err
}
