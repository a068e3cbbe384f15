package apply

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"cupola/server/kube"
)

// Following takes what happens to the objects of a kind. Its functions are called one after
// the other.
type Following struct {
	Kind     string
	Selector string
	Begin    func()                 // a list begins: what was made before is in it
	All      func([]kube.Object)    // what there is, once and whenever changes were missed
	Changed  func(kube.Object)      // is new, or other than before
	Gone     func(kube.Object)      // is there no longer
	Reached  func(ok bool, _ error) // whether the cluster answers; called for each answer and failure
}

const (
	page     = 500             // objects of an answer
	watchFor = 5 * time.Minute // a watch, until the next begins where it ended
	minRetry = 100 * time.Millisecond
	maxRetry = 10 * time.Second
)

// Follow lists the objects once, and watches them until ctx ends. It lists them again only where
// the cluster does not know any longer what has happened since.
func (c *Cluster) Follow(ctx context.Context, f Following) error {
	version, wait := "", minRetry
	for ctx.Err() == nil {
		var err error
		was := version
		if version == "" {
			version, err = c.listAll(ctx, f)
		} else {
			version, err = c.watch(ctx, f, version)
		}
		if err == nil {
			wait = minRetry
			continue
		}
		if ctx.Err() != nil {
			break
		}
		if !errors.Is(err, errShortWatch) {
			f.Reached(false, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait/2 + rand.N(wait)):
		}
		wait = nextRetry(wait, version != was && version != "")
	}
	return ctx.Err()
}

// nextRetry is the wait after the next failure. What a watch told before it ended is progress: an API server with much to do ends watches that
// do not keep up, one after the other, and who waits ever longer is ever further behind.
func nextRetry(wait time.Duration, progress bool) time.Duration {
	if progress {
		return minRetry
	}
	return min(2*wait, maxRetry)
}

// followed is where the objects are.
func (c *Cluster) followed(kind string) dynamic.ResourceInterface {
	if kind == "Node" {
		return c.client.Resource(resources[kind])
	}
	return c.client.Resource(resources[kind]).Namespace(c.Namespace)
}

func (c *Cluster) listAll(ctx context.Context, f Following) (version string, err error) {
	f.Begin()
	all := []kube.Object{}
	for o := (metav1.ListOptions{LabelSelector: f.Selector, Limit: page}); ; {
		list, err := c.followed(f.Kind).List(ctx, o)
		if err != nil {
			return "", err
		}
		for _, i := range list.Items {
			all = append(all, slim(i.Object))
		}
		if o.Continue = list.GetContinue(); o.Continue == "" {
			version = list.GetResourceVersion()
			break
		}
	}
	f.All(all)
	f.Reached(true, nil)
	return version, nil
}

// watch returns the version from which to watch on, or "" to list again.
func (c *Cluster) watch(ctx context.Context, f Following, version string) (string, error) {
	seconds := int64(watchFor.Seconds())
	w, err := c.followed(f.Kind).Watch(ctx, metav1.ListOptions{LabelSelector: f.Selector, ResourceVersion: version, AllowWatchBookmarks: true, TimeoutSeconds: &seconds})
	if err != nil {
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			return "", nil
		}
		return version, err
	}
	defer w.Stop()
	f.Reached(true, nil)
	began := time.Now()
	for e := range w.ResultChan() {
		u, ok := e.Object.(*unstructured.Unstructured)
		if e.Type == watch.Error || !ok {
			version = "" // it is too late, most of all
			break
		}
		version = u.GetResourceVersion()
		switch e.Type {
		case watch.Added, watch.Modified:
			f.Changed(slim(u.Object))
		case watch.Deleted:
			f.Gone(u.Object)
		}
	}
	if ctx.Err() == nil && time.Since(began) < time.Second {
		return version, errShortWatch
	}
	return version, nil
}

// slim leaves out who wrote which field, which is as long as all the rest, and is not read.
func slim(o kube.Object) kube.Object {
	delete(o.Map("metadata"), "managedFields")
	return o
}

// errShortWatch is of a watch that ended at once: the next one does not begin at once.
var errShortWatch = errors.New("the watch ended at once")
