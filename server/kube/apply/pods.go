package apply

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"cupola/server/kube"
)

// Create makes an object, unless there is one of its kind and name.
func (c *Cluster) Create(ctx context.Context, o kube.Object) error {
	r, err := c.of(o)
	if err != nil {
		return err
	}
	_, err = r.Create(ctx, &unstructured.Unstructured{Object: o}, metav1.CreateOptions{FieldManager: manager})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// Try finds out whether an object would be made: the cluster checks all, and keeps nothing.
func (c *Cluster) Try(ctx context.Context, o kube.Object) error {
	r, err := c.of(o)
	if err != nil {
		return err
	}
	_, err = r.Create(ctx, &unstructured.Unstructured{Object: o}, metav1.CreateOptions{FieldManager: manager, DryRun: []string{metav1.DryRunAll}})
	return err
}

// Change merges a change into an object.
func (c *Cluster) Change(ctx context.Context, kind, name string, change map[string]any) error {
	r, err := c.of(kube.Object{"kind": kind})
	if err != nil {
		return err
	}
	text, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("encode the change of %s %s: %w", kind, name, err)
	}
	_, err = r.Patch(ctx, name, types.MergePatchType, text, metav1.PatchOptions{FieldManager: manager})
	return err
}

// Remove deletes an object, if it is there. The processes of a pod have the time of grace to end.
func (c *Cluster) Remove(ctx context.Context, kind, name string, grace time.Duration) error {
	r, err := c.of(kube.Object{"kind": kind})
	if err != nil {
		return err
	}
	seconds := int64(grace.Seconds())
	err = r.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &seconds})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Names are those of the objects of a kind that a selector selects.
func (c *Cluster) Names(ctx context.Context, kind, selector string) (names []string, err error) {
	r, err := c.of(kube.Object{"kind": kind})
	if err != nil {
		return nil, err
	}
	for o := (metav1.ListOptions{LabelSelector: selector, Limit: page}); ; {
		list, err := r.List(ctx, o)
		if err != nil {
			return nil, err
		}
		for _, i := range list.Items {
			names = append(names, i.GetName())
		}
		if o.Continue = list.GetContinue(); o.Continue == "" {
			return names, nil
		}
	}
}

// Refused reports whether the cluster will never do what it was asked for.
func Refused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsNotFound(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// Unauthorized reports whether the cluster does not know who asks.
func Unauthorized(err error) bool { return apierrors.IsUnauthorized(err) }

// ErrNoLog is of a log that the cluster says it cannot give, other than for being busy.
var ErrNoLog = errors.New("the cluster gives no log")

// maxAsked is how many requests for logs are on their way. Each of many that begin at once would find no connection with room for
// it, and open one that it has for itself, although hundreds have room on one.
const maxAsked = 32

// takeTurn waits until one more log may be asked for; ended says that the request is sent, or never will be.
func (c *Cluster) takeTurn(ctx context.Context) (ended func(), err error) {
	select {
	case c.asked <- struct{}{}:
		return sync.OnceFunc(func() { <-c.asked }), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Logs are the lines of a pod's container from a time on, each after its own time, until the
// container has ended. The caller closes them.
func (c *Cluster) Logs(ctx context.Context, pod, container string, since time.Time) (io.ReadCloser, error) {
	query := url.Values{"container": {container}, "follow": {"true"}, "timestamps": {"true"}}
	if !since.IsZero() {
		query.Set("sinceTime", since.UTC().Format(time.RFC3339))
	}
	u := c.base.JoinPath("api/v1/namespaces", c.Namespace, "pods", pod, "log")
	u.RawQuery = query.Encode()
	ended, err := c.takeTurn(ctx)
	if err != nil {
		return nil, err
	}
	defer ended()
	sent := &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { ended() }} // a kubelet answers with the first line
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, sent), http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 1<<10))
		_ = res.Body.Close()
		err := fmt.Errorf("read the log of container %s of pod %s: %s: %s", container, pod, res.Status, text)
		if res.StatusCode != http.StatusTooManyRequests && res.StatusCode != http.StatusServiceUnavailable {
			err = fmt.Errorf("%w: %w", ErrNoLog, err)
		}
		return nil, err
	}
	return res.Body, nil
}

// Events are what the cluster noted of a pod, or of another object, in order.
func (c *Cluster) Events(ctx context.Context, name string) (all []kube.Object, err error) {
	list, err := c.client.Resource(resources["Event"]).Namespace(c.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + name})
	if err != nil {
		return nil, err
	}
	for _, e := range list.Items {
		all = append(all, e.Object)
	}
	slices.SortStableFunc(all, func(a, b kube.Object) int { return cmp.Compare(lastSeen(a), lastSeen(b)) })
	return all, nil
}

func lastSeen(e kube.Object) string { return cmp.Or(e.Text("lastTimestamp"), e.Text("eventTime")) }

// maxSummary bounds what a node may say of its pods.
const maxSummary = 16 << 20

// Summary is what a node's kubelet says that its pods use.
func (c *Cluster) Summary(ctx context.Context, node string) ([]byte, error) {
	u := c.base.JoinPath("api/v1/nodes", node, "proxy/stats/summary")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ask node %s what its pods use: %s", node, res.Status)
	}
	return io.ReadAll(io.LimitReader(res.Body, maxSummary))
}
