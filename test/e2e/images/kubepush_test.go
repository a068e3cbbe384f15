package images

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"cupola/server/kube/kubetest"
	"cupola/test/e2e"
)

// TestAppOnKubernetesCellFromSource pushes an app from source to a cell that is a cluster: it is staged there, and its droplet
// runs there, with its stack, its profile and its sidecar. So do its tasks, and what a rolling deployment replaces loses no
// request. Nobody pulls without the password.
func TestAppOnKubernetesCellFromSource(t *testing.T) {
	t.Parallel()
	binary, n := e2e.NeedBinary(t), kubetest.StartNode(t)
	account := n.Account()
	registry := freeAddress(t, n.Host())
	d := e2e.StartDaemon(t, binary, "--kubernetes", "edge="+account, "--kubernetes-registry", registry)
	n.Trust(registry, filepath.Join(d.Dir, "ca.pem"))
	placeOn(d, "edge")
	pushProfiled(d, "shop", "minifs")
	d.Logged("shop", "/home/vcap/app /home/vcap/app vcap en_US.UTF-8 2000 profiled")
	d.Logged("shop", "sidecar of profiled")
	n.Until("the pods are those of the instances", func() bool {
		return slices.Equal(podNames(n), e2e.GUIDs(d.Running("shop", "web", 1)))
	})
	pods := n.List("v1", "Pod")
	for _, c := range pods[0].Items("spec", "containers") {
		if !strings.HasPrefix(c.Text("image"), registry+"/droplets/") {
			t.Errorf("a container runs %s", c.Text("image"))
		}
	}
	checkPulls(t, registry)
	d.Tells(t, "shop", `echo "$FROM_PROFILE of $(pwd)"`, "profiled of /home/vcap/app")
	rollsHere(t, d)
	entersHere(t, d)
	bindsHere(t, d)
	d.Kill()
	d.Start()
	d.ScaleTo("shop", 3) // with the registry of the next daemon
	n.Until("the pods are those of the instances", func() bool {
		return slices.Equal(slices.Sorted(slices.Values(podNames(n))), e2e.GUIDs(d.Running("shop", "web", 3)))
	})
	if unused := n.Unused(); slices.Contains(unused, "get pods/exec") && slices.Contains(unused, "create pods/exec") {
		t.Errorf("cf ssh needs no right of the account: unused are %v", unused)
	}
	d.Deleted("shop")
	n.Until("nothing is left of the app", func() bool { return len(n.List("v1", "Pod"))+len(n.List("v1", "Secret")) == 0 })
}

// freeAddress is one of a host that nobody listens at.
func freeAddress(t *testing.T, host string) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", host+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// checkPulls asks the registry without a password, and with a wrong one.
func checkPulls(t *testing.T, registry string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // what it refuses is looked at
	for _, password := range []string{"", "wrong"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+registry+"/v2/", nil)
		if err != nil {
			t.Fatal(err)
		}
		if password != "" {
			req.SetBasicAuth("edge", password)
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusUnauthorized {
			t.Errorf("got %s with the password %q; want 401", res.Status, password)
		}
	}
}

// entersHere has a shell in an instance, as cf ssh opens it: with the app's environment, streams both ways, and its ports.
func entersHere(t *testing.T, d *e2e.Daemon) {
	t.Helper()
	d.PushProbe("probe")
	c := d.Enter(0)
	if out, err := d.NewSession(c).Output("echo $(id -u) $INSTANCE_INDEX $(pwd) ${#VCAP_APPLICATION}"); err != nil || !strings.HasPrefix(string(out), "2000 0 /home/vcap ") {
		t.Errorf("got %q, %v", out, err)
	}
	session, sent := d.NewSession(c), bytes.Repeat([]byte("0123456789abcdef"), 100_000)
	session.Stdin = bytes.NewReader(sent)
	if got, err := session.Output("cat"); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("got %d bytes back, %v; want %d", len(got), err, len(sent))
	}
	var exit *ssh.ExitError
	if err := d.NewSession(c).Run("exit 7"); !errors.As(err, &exit) || exit.ExitStatus() != 7 {
		t.Errorf("got %v; want the status 7", err)
	}
	through := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return c.Dial("tcp", "localhost:8080") }}}
	res, err := through.Get("http://probe/")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(body), "ready") {
		t.Errorf("through a forwarded port: got %s %q, %v", res.Status, body, err)
	}
	d.Deleted("probe")
}

// bindsHere binds a service to an app, whose files the cluster renews where they are: the kubelet looks every minute or so.
func bindsHere(t *testing.T, d *e2e.Daemon) {
	t.Helper()
	d.PushProbe("probe")
	var service struct{ GUID string }
	d.API("POST", "/v3/service_instances", e2e.Doc{"type": "user-provided", "name": "db", "credentials": e2e.Doc{"user": "first"},
		"relationships": e2e.Doc{"space": e2e.ToOne(d.First("/v3/spaces?names=dev"))}}, &service)
	d.Bind("probe", service.GUID)
	d.API("PATCH", "/v3/apps/"+d.App("probe")+"/features/service-binding-k8s", e2e.Doc{"enabled": true}, nil)
	d.RestartApp("probe")
	was := d.Running("probe", "web", 1)[0].InstanceGUID
	for _, want := range []string{"first", "second"} {
		d.API("PATCH", "/v3/service_instances/"+service.GUID, e2e.Doc{"credentials": e2e.Doc{"user": want}}, nil)
		began := time.Now()
		e2e.Eventually(t, 5*time.Minute, func() string {
			c := d.Enter(0)
			defer c.Close()
			out, err := d.NewSession(c).CombinedOutput("cat $SERVICE_BINDING_ROOT/db/user")
			if err != nil || string(out) != want {
				return fmt.Sprintf("the file has %q, %v; want %s", out, err, want)
			}
			return ""
		})
		t.Logf("the file had %s after %.0f s", want, time.Since(began).Seconds())
	}
	if is := d.Running("probe", "web", 1)[0].InstanceGUID; is != was {
		t.Errorf("the instance is %s; want %s", is, was)
	}
	d.Deleted("probe")
}

// rollsHere replaces the instances by a rolling deployment while they are asked; in the long form ten, at 200 requests a second.
func rollsHere(t *testing.T, d *e2e.Daemon) {
	t.Helper()
	count, perSecond := 2, 20
	if e2e.Thorough() {
		count, perSecond = 10, 200
	}
	d.ScaleTo("shop", count)
	was := e2e.GUIDs(d.Running("shop", "web", count))
	traffic := d.Send("shop.localhost", perSecond)
	var made struct{ GUID string }
	d.API("POST", "/v3/deployments", e2e.Doc{"relationships": e2e.Doc{"app": e2e.Doc{"data": e2e.Doc{"guid": d.App("shop")}}}}, &made)
	e2e.Eventually(t, kubetest.Patience, func() string {
		var got struct {
			Status struct{ Value, Reason string }
		}
		d.API("GET", "/v3/deployments/"+made.GUID, nil, &got)
		if got.Status.Value == "FINALIZED" {
			return ""
		}
		return "the deployment is " + got.Status.Value + " " + got.Status.Reason
	})
	if failed := traffic.End(t); len(failed) > 0 {
		t.Errorf("%d requests failed, the first one %+v", len(failed), failed[0])
	}
	for _, guid := range e2e.GUIDs(d.Running("shop", "web", count)) {
		if slices.Contains(was, guid) {
			t.Errorf("instance %s was not replaced", guid)
		}
	}
}
