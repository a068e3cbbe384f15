package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"cupola/rootfs/reference"
	"cupola/rootfs/registry"
	"cupola/rootfs/tree"
)

// published says where else an image can be pulled from. It outlives the image in the cache: a collected image can be pulled
// again from any of its places.
type published struct {
	Reference string   // without a digest, unless that is all it has
	Fallbacks []string // other references of the same image, in the order they are asked
	Digest    string   // what Reference meant when it was pulled last
}

// fallbacks are the references to ask for what those of origins do not have. s.mu is held.
func (s *Cache) fallbacks(origins []string) (fallbacks []string, err error) {
	for _, text := range origins {
		r, err := reference.Parse(text)
		if err != nil || r.Scheme != reference.SchemeDocker {
			continue // a layout has none
		}
		_, at, err := s.published(r.WithoutDigest())
		if err != nil {
			return nil, err
		}
		fallbacks = append(fallbacks, at.Fallbacks...)
	}
	return fallbacks, nil
}

func (s *Cache) publishedPath() string { return s.store.Path("images", "fallbacks") }

// published reads what is published and finds what is of the image that r means, by its tag or by its digest. s.mu is held.
func (s *Cache) published(r reference.Reference) (all []published, at published, err error) {
	text, err := os.ReadFile(s.publishedPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, at, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		return nil, at, fmt.Errorf("read the fallbacks of images: %w", err)
	}
	for _, p := range all {
		of, err := reference.Parse(p.Reference)
		if err == nil && of.Repo() == r.Repo() && (r.Digest == "" && of.Tag == r.Tag || r.Digest != "" && p.Digest == r.Digest) {
			return all, p, nil
		}
	}
	return all, at, nil
}

// publish notes what r means and its fallbacks; nil leaves those as they were, and an empty slice forgets them.
func (s *Cache) publish(r reference.Reference, digest string, fallbacks []reference.Reference) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, at, err := s.published(r)
	if err != nil {
		return err
	}
	old := at
	at.Digest = digest
	if at.Reference == "" {
		at.Reference = r.WithoutDigest().String()
	}
	if fallbacks != nil {
		at.Fallbacks = nil
		for _, f := range fallbacks {
			at.Fallbacks = append(at.Fallbacks, f.String())
		}
	}
	if len(old.Fallbacks)+len(at.Fallbacks) == 0 || old.Digest == at.Digest && slices.Equal(old.Fallbacks, at.Fallbacks) {
		return nil
	}
	all = slices.DeleteFunc(all, func(p published) bool { return p.Reference == at.Reference })
	if len(at.Fallbacks) > 0 {
		all = append(all, at)
	}
	return tree.WriteJSONSynced(s.publishedPath(), all)
}

// places are where the image is asked for, in order. known is the digest that it must have in all but the first; "" where
// nothing is known of it.
func (p *pull) places(o PullOptions) (all []registry.Place, known string, err error) {
	all = []registry.Place{{Ref: p.ref, Auth: registry.Auth{Username: o.Username, Password: o.Password, Token: o.Token}, Trusted: o.Trusted}}
	known = p.ref.Digest
	fallbacks := o.Fallbacks
	if fallbacks == nil {
		p.s.mu.Lock()
		_, at, perr := p.s.published(p.ref)
		p.s.mu.Unlock()
		if perr != nil || len(at.Fallbacks) == 0 {
			return all, known, perr
		}
		known = at.Digest
		for _, text := range at.Fallbacks {
			r, err := reference.Parse(text)
			if err != nil {
				return nil, "", err
			}
			fallbacks = append(fallbacks, r)
		}
	}
	for _, r := range fallbacks {
		if r.Scheme != reference.SchemeDocker {
			return nil, "", fmt.Errorf("the fallback %s is in no registry", r)
		}
		all = append(all, registry.Place{Ref: r, Auth: o.authOf(r), Trusted: true})
	}
	return all, known, nil
}

// authOf are the credentials for a fallback's registry.
func (o PullOptions) authOf(r reference.Reference) registry.Auth {
	if o.Others == nil {
		return registry.Auth{}
	}
	return o.Others(r)
}

// find asks one place after the other until one has the image.
func (p *pull) find(ctx context.Context, all []registry.Place, known string) error {
	var failed error
	for n, at := range all {
		digest, err := p.resolveAt(ctx, at, known, n > 0)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil {
			p.digest, p.from = digest, at.Ref
			if n > 0 {
				p.warn(fmt.Sprintf("%s: %v; took it from %s", p.ref, failed, at.Ref))
			}
			return nil
		}
		if n == 0 {
			failed = err
		} else {
			failed = fmt.Errorf("%w; the fallback %s: %w", failed, at.Ref, err)
		}
	}
	return failed
}

// resolveAt asks a place which digest the image has there. A fallback must have the one that is known, under its tag or none.
func (p *pull) resolveAt(ctx context.Context, at registry.Place, known string, fallback bool) (string, error) {
	if !fallback || known == "" {
		return p.s.client.Resolve(ctx, at)
	}
	pinned := at
	pinned.Ref = at.Ref.WithDigest(known)
	if _, err := p.s.client.Resolve(ctx, pinned); err == nil || !errors.Is(err, registry.ErrMissing) {
		return known, err
	}
	digest, err := p.s.client.Resolve(ctx, at)
	if err == nil && digest != known {
		err = fmt.Errorf("it is %s there, not %s", digest, known)
	}
	return digest, err
}

// compare checks that new fallbacks have the image that was found. A fallback that does not answer now may answer once it is
// needed.
func (p *pull) compare(ctx context.Context, all []registry.Place) error {
	for _, at := range all[1:] {
		if at.Ref == p.from {
			continue
		}
		digest, err := p.s.client.Resolve(ctx, at)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			p.warn(fmt.Sprintf("the fallback %s was not looked at: %v", at.Ref, err))
		case digest != p.digest:
			return fmt.Errorf("the fallback %s is %s, but %s is %s", at.Ref, digest, p.from, p.digest)
		}
	}
	return nil
}
