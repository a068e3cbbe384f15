package model

import (
	"strings"
	"testing"

	"cupola/server/bbs/bbspb"
)

func valid() *bbspb.DesiredLRP {
	return &bbspb.DesiredLRP{ProcessGuid: "p-1_A", Domain: "d", RootFs: "preloaded:x", Action: sh(),
		MetricTags: map[string]*bbspb.MetricTagValue{"source_id": {Static: "s"}}}
}

func sh() *bbspb.Action { return &bbspb.Action{Run: &bbspb.Run{Path: "sh", User: "u"}} }

func nested(depth int) *bbspb.Action {
	a := sh()
	for range depth {
		a = &bbspb.Action{Try: &bbspb.Try{Action: a}}
	}
	return a
}

// TestValidateDesired holds Diego's texts.
func TestValidateDesired(t *testing.T) {
	type lrp = bbspb.DesiredLRP
	rule := func(r *bbspb.SecurityGroupRule) func(*lrp) {
		return func(d *lrp) { d.EgressRules = []*bbspb.SecurityGroupRule{r} }
	}
	action := func(a *bbspb.Action) func(*lrp) { return func(d *lrp) { d.Action = a } }
	for _, c := range []struct {
		want   string
		change func(*lrp)
	}{
		{"", func(*lrp) {}},
		{"Invalid field: domain, Invalid field: instances", func(d *lrp) { d.Domain, d.Instances = "", -1 }},
		{"Invalid field: rootfs", func(d *lrp) { d.RootFs = "lucid64" }},
		{"Invalid field: rootfs", func(d *lrp) { d.RootFs = "" }},
		{"Invalid field: process_guid", func(d *lrp) { d.ProcessGuid = "a b" }},
		{"Invalid field: process_guid", func(d *lrp) { d.ProcessGuid = "../x" }},
		{"Invalid field: memory_mb, Invalid field: disk_mb, Invalid field: max_pids", func(d *lrp) { d.MemoryMb, d.DiskMb, d.MaxPids = -1, -1, -1 }},
		{"Invalid field: log_rate_limit_bytes_per_second", func(d *lrp) { d.LogRateLimit = &bbspb.LogRateLimit{BytesPerSecond: -2} }},
		{"", func(d *lrp) { d.LogRateLimit = &bbspb.LogRateLimit{BytesPerSecond: -1} }},
		{"", func(d *lrp) { d.Annotation = strings.Repeat("a", 10<<10) }},
		{"Invalid field: annotation", func(d *lrp) { d.Annotation = strings.Repeat("a", 10<<10+1) }},
		{"Invalid field: privileged (privileged containers are not supported: leave it out)", func(d *lrp) { d.Privileged = true }},
		{"Invalid field: routes", func(d *lrp) {
			d.Routes = &bbspb.Routes{Routes: map[string][]byte{"a": make([]byte, 64<<10), "b": make([]byte, 64<<10+1)}}
		}},
		{"Invalid field: volumeMountedFiles", func(d *lrp) { d.VolumeMountedFiles = []*bbspb.File{{Path: "a", Content: strings.Repeat("a", 1<<20+1)}} }},
		{"Invalid field: metric_tags", func(d *lrp) { d.MetricTags = nil }},
		{"Invalid field: metric_tags, Invalid field: source_id should match metrics_guid", func(d *lrp) { d.MetricsGuid = "other" }},
		{"Invalid field: metric_tags, Invalid field: static, Invalid field: dynamic", func(d *lrp) { d.MetricTags["x"] = &bbspb.MetricTagValue{} }},
		{"invalid action type", action(nil)},
		{"Invalid field: action, Invalid field: inner-action", action(&bbspb.Action{})},
		{"Invalid field: action, Invalid field: path, Invalid field: user", action(&bbspb.Action{Run: &bbspb.Run{}})},
		{"Invalid field: action, Invalid field: timeout_ms", action(&bbspb.Action{Timeout: &bbspb.Timeout{Action: sh()}})},
		{"Invalid field: action, Invalid field: action, Invalid field: timeout_ms", action(&bbspb.Action{Timeout: &bbspb.Timeout{}})},
		{"Invalid field: action, Invalid field: actions", action(&bbspb.Action{Serial: &bbspb.Actions{}})},
		{"Invalid field: action, Invalid field: from, Invalid field: to, Invalid field: user", action(&bbspb.Action{Download: &bbspb.Download{}})},
		{"Invalid field: action, Invalid field: checksum value", action(&bbspb.Action{Download: &bbspb.Download{From: "f", To: "t", User: "u", ChecksumAlgorithm: "md5"}})},
		{"Invalid field: action, Invalid field: invalid algorithm", action(&bbspb.Action{Download: &bbspb.Download{From: "f", To: "t", User: "u", ChecksumAlgorithm: "crc", ChecksumValue: "1"}})},
		{"Invalid field: action, Invalid field: to, Invalid field: from, Invalid field: user", action(&bbspb.Action{Upload: &bbspb.Upload{}})},
		{"", action(nested(maxDepth))},
		{"Invalid field: action, actions are nested too deeply", action(nested(maxDepth + 1))},
		{"Invalid field: setup, Invalid field: user", func(d *lrp) { d.Setup = &bbspb.Action{Run: &bbspb.Run{Path: "p"}} }},
		{"Invalid field: monitor, Invalid field: user", func(d *lrp) { d.Monitor = &bbspb.Action{Run: &bbspb.Run{Path: "p"}} }},
		{"invalid field: name cannot be blank", func(d *lrp) { d.Env = []*bbspb.Env{{Value: "v"}} }},
		{"Invalid field: sidecars, invalid action type, Invalid field: memory_mb", func(d *lrp) { d.Sidecars = []*bbspb.Sidecar{{MemoryMb: -1}} }},
		{"Invalid field: image_username", func(d *lrp) { d.ImagePassword = "x" }},
		{"Invalid field: image_password", func(d *lrp) { d.ImageUsername = "x" }},
		{"Invalid field: check_definition, Invalid field: check", func(d *lrp) { d.CheckDefinition = &bbspb.CheckDefinition{Checks: []*bbspb.Check{{}}} }},
		{"Invalid field: check_definition, Invalid field: port", func(d *lrp) {
			d.CheckDefinition = &bbspb.CheckDefinition{ReadinessChecks: []*bbspb.Check{{Tcp: &bbspb.TCPCheck{Port: 65536}}}}
		}},
		{"Invalid field: cached_dependency, Invalid field: from, Invalid field: to", func(d *lrp) { d.CachedDependencies = []*bbspb.CachedDependency{{}} }},
		{"Invalid field: image_layer, Invalid field: digest_algorithm, Invalid field: digest_value, Invalid field: legacy_download_user", func(d *lrp) {
			d.ImageLayers = []*bbspb.ImageLayer{{Url: "u", DestinationPath: "/", LayerType: bbspb.LayerType_LAYER_TYPE_EXCLUSIVE, MediaType: bbspb.MediaType_MEDIA_TYPE_TGZ}}
		}},
		{"invalid volume_mount driver, invalid volume_mount mode", func(d *lrp) { d.VolumeMounts = []*bbspb.VolumeMount{{}} }},

		{"Invalid field: egress_rules, Invalid field: protocol", rule(&bbspb.SecurityGroupRule{Protocol: "sctp", Destinations: []string{"1.2.3.4"}})},
		{"Invalid field: egress_rules, Missing required field: ports or port_range", rule(&bbspb.SecurityGroupRule{Protocol: "tcp", Destinations: []string{"1.2.3.4"}})},
		{"Invalid field: egress_rules, Invalid field: destinations [ Must have at least 1 destination ]", rule(&bbspb.SecurityGroupRule{Protocol: "all"})},
		{"Invalid field: egress_rules, Invalid field: destinations [ Invalid IP ]", rule(&bbspb.SecurityGroupRule{Protocol: "all", Destinations: []string{"1.2.3.9-1.2.3.4"}})},
		{"Invalid field: egress_rules, Invalid field: destinations [ invalid CIDR address: 1.2.3.4/99 ]", rule(&bbspb.SecurityGroupRule{Protocol: "all", Destinations: []string{"1.2.3.4/99"}})},
		{"", rule(&bbspb.SecurityGroupRule{Protocol: "udp", Ports: []uint32{53}, Destinations: []string{"1.2.3.4-1.2.3.9,2.0.0.0/8"}})},
		{"Invalid field: egress_rules, Invalid: ports and port_range provided", rule(&bbspb.SecurityGroupRule{Protocol: "tcp", Ports: []uint32{1}, PortRange: &bbspb.PortRange{Start: 1, End: 2}, Destinations: []string{"1.2.3.4"}})},
		{"Invalid field: egress_rules, Invalid field: port_range", rule(&bbspb.SecurityGroupRule{Protocol: "tcp", PortRange: &bbspb.PortRange{Start: 2, End: 1}, Destinations: []string{"1.2.3.4"}})},
		{"Invalid field: egress_rules, Invalid field: icmp_info", rule(&bbspb.SecurityGroupRule{Protocol: "icmp", Destinations: []string{"1.2.3.4"}})},
		{"Invalid field: egress_rules, Invalid field: icmpv6_info", rule(&bbspb.SecurityGroupRule{Protocol: "icmpv6", Destinations: []string{"::1"}})},
	} {
		d := valid()
		c.change(d)
		checkFault(t, ValidateDesired(d), c.want)
	}
	checkFault(t, ValidateDesired(nil), "Invalid field: desired_lrp")
}

func checkFault(t *testing.T, err error, want string) {
	t.Helper()
	got := ""
	if err != nil {
		got = err.Error()
		if e, ok := err.(*Error); !ok || e.Type != InvalidRequest {
			t.Errorf("got %#v; want an invalid request", err)
		}
	}
	if got != want {
		t.Errorf("got %q; want %q", got, want)
	}
}

func TestValidateUpdate(t *testing.T) {
	minus, text, long := int32(-1), "x", strings.Repeat("a", 10<<10+1)
	for _, c := range []struct {
		want string
		r    *bbspb.UpdateDesiredLRPRequest
	}{
		{"", &bbspb.UpdateDesiredLRPRequest{ProcessGuid: "p"}},
		{"Invalid field: process_guid", &bbspb.UpdateDesiredLRPRequest{}},
		{"Invalid field: instances", &bbspb.UpdateDesiredLRPRequest{ProcessGuid: "p", Update: &bbspb.DesiredLRPUpdate{Instances: &minus}}},
		{"Invalid field: annotation", &bbspb.UpdateDesiredLRPRequest{ProcessGuid: "p", Update: &bbspb.DesiredLRPUpdate{Annotation: &long}}},
		{"Invalid field: image_password", &bbspb.UpdateDesiredLRPRequest{ProcessGuid: "p", Update: &bbspb.DesiredLRPUpdate{ImageUsername: &text}}},
		{"Invalid field: image_username", &bbspb.UpdateDesiredLRPRequest{ProcessGuid: "p", Update: &bbspb.DesiredLRPUpdate{ImagePassword: &text}}},
	} {
		checkFault(t, ValidateUpdate(c.r), c.want)
	}
}

func TestValidateTask(t *testing.T) {
	task := func(change func(*bbspb.DesireTaskRequest)) *bbspb.DesireTaskRequest {
		r := &bbspb.DesireTaskRequest{TaskGuid: "t", Domain: "d", Definition: &bbspb.TaskDefinition{RootFs: "preloaded:x", Action: sh()}}
		change(r)
		return r
	}
	for _, c := range []struct {
		want string
		r    *bbspb.DesireTaskRequest
	}{
		{"", task(func(*bbspb.DesireTaskRequest) {})},
		{"Invalid field: task_guid, Invalid field: domain, Invalid field: task_definition", &bbspb.DesireTaskRequest{}},
		{"Invalid field: rootfs, invalid action type", task(func(r *bbspb.DesireTaskRequest) { r.Definition = &bbspb.TaskDefinition{} })},
		{"Invalid field: egress_rules", task(func(r *bbspb.DesireTaskRequest) { r.Definition.EgressRules = []*bbspb.SecurityGroupRule{{}} })},
		{"Invalid field: privileged (privileged containers are not supported: leave it out)", task(func(r *bbspb.DesireTaskRequest) { r.Definition.Privileged = true })},
		{"Invalid field: log_rate_limit", task(func(r *bbspb.DesireTaskRequest) { r.Definition.LogRateLimit = &bbspb.LogRateLimit{BytesPerSecond: -2} })},
		{"Invalid field: completion_callback_url", task(func(r *bbspb.DesireTaskRequest) { r.Definition.CompletionCallbackUrl = "file:///etc/passwd" })},
	} {
		checkFault(t, ValidateTask(c.r), c.want)
	}
}
