package podcell

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestMend(t *testing.T) {
	for _, c := range []struct {
		err        error
		says, mend string
	}{
		{apierrors.NewUnauthorized("Unauthorized"), "Unauthorized", "create token"},
		{apierrors.NewForbidden(podResource, "", errors.New("no right")), "forbidden", "apply -k server/kube/access"},
		{fmt.Errorf("find the cluster: %w", &fs.PathError{Op: "stat", Path: "edge.kubeconfig", Err: fs.ErrNotExist}), "stat edge.kubeconfig", "a kubeconfig that is there"},
		{&url.Error{Op: "Get", URL: "https://192.0.2.1:6443/api/v1/pods?labelSelector=x", Err: errors.New("connection refused")}, "192.0.2.1:6443: connection refused", "get pods"},
	} {
		if got := plain(c.err).Error(); !strings.Contains(got, c.says) || strings.Contains(got, "labelSelector") {
			t.Errorf("%v: says %q; want %q", c.err, got, c.says)
		}
		if got := mendOf(c.err); !strings.Contains(got, c.mend) {
			t.Errorf("%v: mend %q; want %q", c.err, got, c.mend)
		}
	}
}

// Thousands of pods may be slow at once.
func TestEventsAreAskedForInTurn(t *testing.T) {
	t.Parallel()
	c, now, asked := &Cell{}, time.Now(), 0
	for i := range 1000 {
		if c.mayAsk(now.Add(time.Duration(i) * 10 * time.Millisecond)) {
			asked++
		}
	}
	if asked != 10 {
		t.Errorf("asked %d times in 10 s; want once a second", asked)
	}
}
