package rootfs

import (
	"cupola/rootfs/image"
	"cupola/rootfs/stack"
)

// Kept is what a backup needs of the store. Nothing of it is collected until Release.
type Kept struct {
	Stacks  []stack.Saved
	Images  []image.Image
	Release func()
}

// Keep finds the stacks that the store does not make itself, and the images that they are made of or that need wants.
func (s *Store) Keep(need func(digest string) bool) (*Kept, error) {
	k := &Kept{}
	var err error
	k.Release, err = s.store.Hold(func() ([]string, error) {
		var trees, blobs []string
		k.Stacks, trees = s.Stacks.Select()
		of := map[string]bool{}
		for _, st := range k.Stacks {
			if st.Kind == stack.KindImage {
				of[st.Digest] = true
			}
		}
		var err error
		k.Images, blobs, err = s.Images.Select(func(digest string) bool { return of[digest] || need(digest) })
		return append(trees, blobs...), err
	})
	if err != nil {
		return nil, err
	}
	return k, nil
}
