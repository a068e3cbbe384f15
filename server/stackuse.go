package server

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"cupola/rootfs/image"
	"cupola/rootfs/stack"
	"cupola/rootfs/system"
	"cupola/store"
)

// StackDetail is all there is to tell of a stack or an image.
type StackDetail struct {
	Stack    *StackInfo `json:",omitempty"`
	Image    *ImageInfo `json:",omitempty"` // that the stack is made of, or that was asked for
	Users    []string   // what needs it: apps as org/space/app, and "LRP guid" and "task guid" of the BBS
	Warnings []string   // what to expect of it on this machine
}

// Inspect tells of a stack, or of an image named as for Image.
func (l localStacks) Inspect(ctx context.Context, name string) (d StackDetail, err error) {
	s, ok := l.roots.Stacks.Get(name)
	if ok {
		info := l.info(s)
		d.Stack = &info
	}
	if !ok || s.Kind == stack.KindImage {
		image, err := l.Image(ctx, name)
		if err != nil {
			return d, err
		}
		d.Image, s.Kernel = &image, image.Kernel
	}
	if w := system.KernelWarning(s.Kernel); w != "" {
		d.Warnings = append(d.Warnings, w)
	}
	return d, l.store.Read(ctx, func(tx *store.Tx) error {
		if ok {
			d.Users, err = l.stackUsers(tx, name)
		} else {
			d.Users, err = l.imageUsers(tx, d.Image.Digest)
		}
		return err
	})
}

// Remove removes a stack, or else an image, that neither an app nor the BBS uses.
func (l localStacks) Remove(ctx context.Context, name string) (image.Removed, error) {
	l.gcMu.Lock()
	defer l.gcMu.Unlock()
	if _, ok := l.roots.Stacks.Get(name); ok {
		return image.Removed{}, l.removeStack(ctx, name)
	}
	i, err := l.roots.Images.Find(withScheme(name))
	if errors.Is(err, image.ErrNotPulled) {
		return image.Removed{}, errNothingCalled(name)
	}
	if err != nil {
		return image.Removed{}, err
	}
	users, err := l.users(ctx, func(tx *store.Tx) ([]string, error) { return tx.ImageUsers(i.Digest) })
	if err != nil {
		return image.Removed{}, err
	}
	if users != "" {
		return image.Removed{}, fmt.Errorf("image %s is used by apps: %s; delete their droplets, or the apps, first", i.Reference, users)
	}
	users, err = l.users(ctx, func(tx *store.Tx) ([]string, error) { return l.bbsUsers(tx, "", i.Digest) })
	if err != nil {
		return image.Removed{}, err
	}
	if users != "" {
		return image.Removed{}, errUsedByBBS("image "+i.Reference, users)
	}
	return l.roots.Images.Remove(ctx, i.Digest)
}

func (l localStacks) removeStack(ctx context.Context, name string) error {
	users, err := l.users(ctx, func(tx *store.Tx) ([]string, error) { return tx.StackUsers(name) })
	if err != nil {
		return err
	}
	if users != "" {
		return fmt.Errorf("stack %q is used by apps: %s; push them to another one first", name, users)
	}
	users, err = l.users(ctx, func(tx *store.Tx) ([]string, error) { return l.bbsUsers(tx, name, "") })
	if err != nil {
		return err
	}
	if users != "" {
		return errUsedByBBS("stack "+name, users)
	}
	if err := l.roots.Stacks.Remove(name); err != nil {
		return err
	}
	err = l.store.Write(ctx, func(tx *store.Tx) error {
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
	return errors.Join(err, l.offer(ctx))
}

// apiStacks are the stacks of a daemon, for its API.
type apiStacks struct{ *daemon }

// Users lists what of the BBS needs a stack.
func (a apiStacks) Users(tx *store.Tx, name string) ([]string, error) {
	all, err := localStacks(a).bbsUsers(tx, name, "")
	return all[:min(len(all), maxUsers)], err
}

// Remove takes the root filesystem of a stack away, if this machine has it.
func (a apiStacks) Remove(name string) error {
	if _, ok := a.roots.Stacks.Get(name); !ok {
		return nil
	}
	return a.roots.Stacks.Remove(name)
}

// Offer brings rows and cells up to the stacks that are left. What fails is made
// up for at the next start.
func (a apiStacks) Offer() {
	ctx := context.Background()
	if err := localStacks(a).offer(ctx); err != nil {
		a.Log.ErrorContext(ctx, "stacks were not offered anew", "err", err)
	}
}

const maxUsers = 50 // that a refusal lists

// users lists those that find finds, for people.
func (l localStacks) users(ctx context.Context, find func(*store.Tx) ([]string, error)) (text string, err error) {
	err = l.store.Read(ctx, func(tx *store.Tx) error {
		all, err := find(tx)
		text = strings.Join(all[:min(len(all), maxUsers)], ", ")
		if more := len(all) - maxUsers; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		return err
	})
	return text, err
}

// Inspect asks for a stack or an image.
func (c control) Inspect(ctx context.Context, name string) (d StackDetail, err error) {
	return d, c.get(ctx, "/inspect?"+url.Values{"name": {name}}.Encode(), &d)
}
