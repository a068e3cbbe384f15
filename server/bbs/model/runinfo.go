package model

import (
	"cmp"
	"path"
	"strconv"
	"strings"
	"time"

	"cupola/runtime/lrp"
	"cupola/server/bbs/bbspb"
)

// policyGroup is the network property that Cloud Controller gives an app's GUID.
const policyGroup = "policy_group_id"

// Desired is what a DesiredLRP wants to run. It was found valid.
func Desired(d *bbspb.DesiredLRP) lrp.Desired {
	r := lrp.RunInfo{
		RootFS: d.RootFs, ImageUsername: d.ImageUsername, ImagePassword: d.ImagePassword, Privileged: d.Privileged,
		Layers: layers(d.ImageLayers, d.LegacyDownloadUser), CachedDependencies: dependencies(d.CachedDependencies), Files: files(d.VolumeMountedFiles),
		Env: env(d.Env), Setup: action(d.Setup), Action: action(d.Action), Monitor: action(d.Monitor), Checks: checks(d.CheckDefinition),
		StartTimeout: startTimeout(d),
		MemoryMB:     int(d.MemoryMb), DiskMB: int(d.DiskMb), MaxPids: int(d.MaxPids), CPUWeight: int(d.CpuWeight),
		LogRateLimitByte: logRate(d.LogRateLimit), Egress: egress(d.EgressRules), PolicyGroup: d.Network.GetProperties()[policyGroup],
		VolumeDrivers: drivers(d.VolumeMounts), OrganizationalUnits: d.CertificateProperties.GetOrganizationalUnit(),
		SystemCertificatesPath: d.TrustedSystemCertificatesPath,
		Constraint:             lrp.Constraint{Require: d.PlacementTags},
		Log:                    target(d.LogGuid, d.LogSource, d.MetricTags),
	}
	for _, p := range d.Ports {
		r.Ports = append(r.Ports, uint16(p))
	}
	for _, s := range d.Sidecars {
		r.Sidecars = append(r.Sidecars, lrp.Sidecar{Action: action(s.GetAction()), MemoryMB: int(s.GetMemoryMb()), DiskMB: int(s.GetDiskMb())})
	}
	return lrp.Desired{ProcessGUID: d.ProcessGuid, Domain: d.Domain, Instances: int(d.Instances), RunInfo: r}
}

// startTimeout takes the field of older clients where the newer is not given.
func startTimeout(d *bbspb.DesiredLRP) time.Duration {
	if d.StartTimeoutMs > 0 {
		return milliseconds(d.StartTimeoutMs)
	}
	return time.Duration(d.DeprecatedStartTimeoutS) * time.Second
}

// Task is what a Task runs. It was found valid.
func Task(d *bbspb.TaskDefinition) lrp.RunInfo {
	r := lrp.RunInfo{
		RootFS: d.RootFs, ImageUsername: d.ImageUsername, ImagePassword: d.ImagePassword, Privileged: d.Privileged,
		Layers: layers(d.ImageLayers, d.LegacyDownloadUser), CachedDependencies: dependencies(d.CachedDependencies), Files: files(d.VolumeMountedFiles),
		Env: env(d.Env), Action: action(d.Action),
		MemoryMB: int(d.MemoryMb), DiskMB: int(d.DiskMb), MaxPids: int(d.MaxPids), CPUWeight: int(d.CpuWeight),
		LogRateLimitByte: logRate(d.LogRateLimit), Egress: egress(d.EgressRules), PolicyGroup: d.Network.GetProperties()[policyGroup],
		VolumeDrivers: drivers(d.VolumeMounts), OrganizationalUnits: d.CertificateProperties.GetOrganizationalUnit(),
		SystemCertificatesPath: d.TrustedSystemCertificatesPath,
		Constraint:             lrp.Constraint{Require: d.PlacementTags},
		Log:                    target(d.LogGuid, d.LogSource, d.MetricTags), ResultFile: d.ResultFile,
	}
	r.Log.Instance = "0"
	return r
}

func env(all []*bbspb.Env) (vars []lrp.EnvVar) {
	for _, e := range all {
		vars = append(vars, lrp.EnvVar{Name: e.GetName(), Value: e.GetValue()})
	}
	return vars
}

// files are named relative to where the container finds them.
func files(all []*bbspb.File) (out []lrp.File) {
	for _, f := range all {
		out = append(out, lrp.File{Path: strings.TrimPrefix(path.Clean("/"+f.GetPath()), "/"), Content: []byte(f.GetContent())})
	}
	return out
}

// logRate has no limit where none is given: Diego's 0 lets no line through.
func logRate(l *bbspb.LogRateLimit) int64 {
	if l == nil {
		return -1
	}
	return l.BytesPerSecond
}

func drivers(all []*bbspb.VolumeMount) (names []string) {
	for _, m := range all {
		names = append(names, m.GetDriver())
	}
	return names
}

// defaultLogSource is Diego's log source for actions without one.
const defaultLogSource = "LOG"

// target says under which name the output goes to the log cache: the tag
// source_id comes before the older log GUID.
func target(guid, source string, metricTags map[string]*bbspb.MetricTagValue) lrp.LogTarget {
	t := lrp.LogTarget{GUID: cmp.Or(metricTags["source_id"].GetStatic(), guid), Source: cmp.Or(source, defaultLogSource), Tags: map[string]string{}}
	for k, v := range metricTags {
		if v.GetStatic() != "" {
			t.Tags[k] = v.GetStatic()
		}
	}
	return t
}

func checks(d *bbspb.CheckDefinition) lrp.CheckDefinition {
	return lrp.CheckDefinition{Liveness: checkList(d.GetChecks()), Readiness: checkList(d.GetReadinessChecks()), LogSource: d.GetLogSource()}
}

func checkList(all []*bbspb.Check) (list []lrp.Check) {
	for _, c := range all {
		if h := c.GetHttp(); h != nil {
			list = append(list, lrp.Check{Type: lrp.CheckHTTP, Port: uint16(h.Port), Path: cmp.Or(h.Path, "/"),
				InvocationTimeout: milliseconds(h.RequestTimeoutMs), Interval: milliseconds(h.IntervalMs)})
			continue
		}
		t := c.GetTcp()
		list = append(list, lrp.Check{Type: lrp.CheckPort, Port: uint16(t.GetPort()),
			InvocationTimeout: milliseconds(t.GetConnectTimeoutMs()), Interval: milliseconds(t.GetIntervalMs())})
	}
	return list
}

// milliseconds is a duration that does not overflow.
func milliseconds[T int64 | uint64](ms T) time.Duration {
	const most = 1 << 40 // 35 years
	return time.Duration(min(ms, most)) * time.Millisecond
}

func egress(all []*bbspb.SecurityGroupRule) (rules []lrp.EgressRule) {
	for _, r := range all {
		e := lrp.EgressRule{Protocol: r.GetProtocol(), ICMPType: int(r.GetIcmpInfo().GetType()), ICMPCode: int(r.GetIcmpInfo().GetCode()), Log: r.GetLog()}
		for _, list := range r.GetDestinations() {
			e.Destinations = append(e.Destinations, strings.Split(list, ",")...)
		}
		var ports []string
		for _, p := range r.GetPorts() {
			ports = append(ports, number(p))
		}
		if p := r.GetPortRange(); p != nil {
			ports = append(ports, number(p.Start)+"-"+number(p.End))
		}
		e.Ports = strings.Join(ports, ",")
		rules = append(rules, e)
	}
	return rules
}

func number(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

func layers(all []*bbspb.ImageLayer, downloadUser string) (list []lrp.Layer) {
	for _, l := range all {
		list = append(list, lrp.Layer{Name: l.GetName(), Dest: l.GetDestinationPath(),
			Exclusive: l.GetLayerType() == bbspb.LayerType_LAYER_TYPE_EXCLUSIVE, User: downloadUser,
			Source: lrp.Source{From: l.GetUrl(), Checksum: digest(l), CacheKey: l.GetDigestValue()}})
	}
	return list
}

func digest(l *bbspb.ImageLayer) lrp.Checksum {
	switch l.GetDigestAlgorithm() {
	case bbspb.DigestAlgorithm_DIGEST_ALGORITHM_SHA256:
		return lrp.Checksum{Algorithm: "sha256", Value: l.DigestValue}
	case bbspb.DigestAlgorithm_DIGEST_ALGORITHM_SHA512:
		return lrp.Checksum{Algorithm: "sha512", Value: l.DigestValue}
	}
	return lrp.Checksum{}
}

func dependencies(all []*bbspb.CachedDependency) (list []lrp.CachedDependency) {
	for _, d := range all {
		list = append(list, lrp.CachedDependency{Name: d.GetName(), To: d.GetTo(), LogSource: d.GetLogSource(),
			Source: source(d.GetFrom(), d.GetCacheKey(), d.GetChecksumAlgorithm(), d.GetChecksumValue())})
	}
	return list
}
