package kube

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"cupola/runtime/lrp"
)

// TestPlanOf keeps all of a staging's actions, with what only its processes may know.
func TestPlanOf(t *testing.T) {
	c := lrp.Container{Domain: lrp.DomainStaging, RunInfo: lrp.RunInfo{ResultFile: "/tmp/result.json", Log: lrp.LogTarget{Source: "STG"}, Env: []lrp.EnvVar{{Name: "a b", Value: "odd"}}}}
	download := func(from string) lrp.Action {
		return lrp.Download{Source: lrp.Source{From: from}, To: "/tmp/app", Artifact: "app"}.Action()
	}
	c.Action = lrp.Within(time.Minute, lrp.Serial(
		lrp.Parallel(download("blob:ab"), lrp.Tried(download("layer:cd"))),
		lrp.Run{Path: "/b", Args: []string{"-x"}, Dir: "/d", Env: []lrp.EnvVar{{Name: "URL", Value: "s3cret"}}}.Action(),
		lrp.Action{EmitProgress: &lrp.EmitProgress{Start: "s", Success: "ok", FailurePrefix: "f", Action: lrp.Upload{Artifact: "droplet", From: "/tmp/droplet", To: "blob:droplet"}.Action()}}))
	p, err := PlanOf(c)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"env":[{"Name":"a b","Value":"odd"}],"source":"STG","steps":{"timeout":{"step":{"serial":[` +
		`{"parallel":[{"download":{"input":"blob:ab","artifact":"app","to":"/tmp/app"}},{"try":{"download":{"input":"layer:cd","image":true,"artifact":"app","to":"/tmp/app"}}}]},` +
		`{"run":{"path":"/b","args":["-x"],"dir":"/d","env":[{"Name":"URL","Value":"s3cret"}]}},` +
		`{"progress":{"step":{"upload":{"artifact":"droplet","from":"/tmp/droplet","output":"droplet"}},"start":"s","success":"ok","failure_prefix":"f"}}]},"after":60000000000}},"result":"/tmp/result.json"}`
	if string(text) != want {
		t.Errorf("got %s; want %s", text, want)
	}
	if got := strings.Join(inputsOf(c), " "); got != "blob:ab layer:cd" {
		t.Errorf("got the inputs %s", got)
	}
	for name, a := range map[string]lrp.Action{"a download by URL": download("https://example.com/x"), "an upload by URL": lrp.Upload{To: "https://example.com/x"}.Action(), "codependent": lrp.Codependent(download("blob:ab")), "nothing": {}} {
		c.Action = lrp.Serial(a)
		if _, err := PlanOf(c); err == nil {
			t.Errorf("%s becomes a plan", name)
		}
	}
}

func TestStagingReason(t *testing.T) {
	for _, c := range []struct {
		end      InstanceEnd
		reason   string
		lost     bool
		reported bool
	}{
		{InstanceEnd{Source: "STG"}, "", false, true},
		{InstanceEnd{Source: "STG", Code: 223, Said: `{"reasons":["a","b"]}`}, "a; b", false, true},
		{InstanceEnd{Source: "STG", Code: 137, OOM: true, Said: `{"reasons":["STG: Exited with status 137"]}`}, "STG: Exited with status 137 (out of memory)", false, true},
		{InstanceEnd{Source: "STG", Code: 137, OOM: true}, "STG: Exited with status 137 (out of memory)", false, false},
		{InstanceEnd{Source: "STG", Code: 1, Said: `{"lost":true}`}, "", true, true},
		{InstanceEnd{Source: "STG", Code: 1, Said: `not JSON`}, "STG: Exited with status 1", false, false},
		{InstanceEnd{Source: "STG", Code: -1, Message: "Evicted: too much disk"}, "STG: Evicted: too much disk", false, false},
	} {
		reason, lost := c.end.StagingReason()
		if reason != c.reason || lost != c.lost || c.end.Reported() != c.reported {
			t.Errorf("%+v: got %q, %v, %v", c.end, reason, lost, c.end.Reported())
		}
	}
}
