package model

import (
	"strconv"
	"strings"

	"cupola/runtime/lrp"
	"cupola/server/bbs/bbspb"
	"cupola/server/desire"
)

// Present is what an app desires as a message, without a tag.
func Present(app desire.App) *bbspb.DesiredLRP {
	m := present(app.Desired)
	m.Routes = &bbspb.Routes{Routes: presentRoutes(app)}
	return m
}

// present is Present without routes. What comes from the cell's own blobs has their
// scheme.
func present(d lrp.Desired) *bbspb.DesiredLRP {
	m := &bbspb.DesiredLRP{
		ProcessGuid: d.ProcessGUID, Domain: d.Domain, RootFs: d.RootFS, Instances: int32(d.Instances),
		Env: presentEnv(d.Env), Setup: presentAction(d.Setup), Action: presentAction(d.Action), Monitor: presentAction(d.Monitor),
		StartTimeoutMs: d.StartTimeout.Milliseconds(), DiskMb: int32(d.DiskMB), MemoryMb: int32(d.MemoryMB), CpuWeight: uint32(d.CPUWeight),
		MaxPids: int32(d.MaxPids), LogSource: d.Log.Source, LogGuid: d.Log.GUID, MetricsGuid: d.Log.GUID,
		ImageUsername: d.ImageUsername, ImagePassword: d.ImagePassword, TrustedSystemCertificatesPath: d.SystemCertificatesPath,
		PlacementTags: d.Constraint.Require, CheckDefinition: presentChecks(d.Checks),
		LogRateLimit: &bbspb.LogRateLimit{BytesPerSecond: d.LogRateLimitByte},
		MetricTags: map[string]*bbspb.MetricTagValue{"source_id": {Static: d.Log.GUID},
			"instance_id":         {Dynamic: bbspb.MetricTagDynamic_METRIC_TAG_INDEX},
			"process_instance_id": {Dynamic: bbspb.MetricTagDynamic_METRIC_TAG_INSTANCE_GUID}},
	}
	if d.PolicyGroup != "" {
		m.Network = &bbspb.Network{Properties: map[string]string{policyGroup: d.PolicyGroup}}
	}
	for k, v := range d.Log.Tags {
		m.MetricTags[k] = &bbspb.MetricTagValue{Static: v}
	}
	for _, p := range d.Ports {
		m.Ports = append(m.Ports, uint32(p))
	}
	if len(d.OrganizationalUnits) > 0 {
		m.CertificateProperties = &bbspb.CertificateProperties{OrganizationalUnit: d.OrganizationalUnits}
	}
	for _, s := range d.Sidecars {
		m.Sidecars = append(m.Sidecars, &bbspb.Sidecar{Action: presentAction(s.Action), MemoryMb: int32(s.MemoryMB), DiskMb: int32(s.DiskMB)})
	}
	for _, f := range d.Files {
		m.VolumeMountedFiles = append(m.VolumeMountedFiles, &bbspb.File{Path: f.Path, Content: string(f.Content)})
	}
	presentSources(m, d.RunInfo)
	for _, r := range d.Egress {
		m.EgressRules = append(m.EgressRules, presentRule(r)...)
	}
	return m
}

func presentEnv(vars []lrp.EnvVar) (all []*bbspb.Env) {
	for _, v := range vars {
		all = append(all, &bbspb.Env{Name: v.Name, Value: v.Value})
	}
	return all
}

// presentSources gives m its layers and cached dependencies.
func presentSources(m *bbspb.DesiredLRP, r lrp.RunInfo) {
	for _, l := range r.Layers {
		kind := bbspb.LayerType_LAYER_TYPE_SHARED
		if l.Exclusive {
			kind = bbspb.LayerType_LAYER_TYPE_EXCLUSIVE
		}
		digest, _ := strings.CutPrefix(l.From, lrp.BlobScheme)
		m.ImageLayers = append(m.ImageLayers, &bbspb.ImageLayer{Name: l.Name, Url: l.From, DestinationPath: l.Dest, LayerType: kind,
			MediaType: bbspb.MediaType_MEDIA_TYPE_TGZ, DigestAlgorithm: bbspb.DigestAlgorithm_DIGEST_ALGORITHM_SHA256, DigestValue: digest})
	}
	for _, c := range r.CachedDependencies {
		m.CachedDependencies = append(m.CachedDependencies, &bbspb.CachedDependency{Name: c.Name, From: c.From, To: c.To, CacheKey: c.CacheKey,
			LogSource: c.LogSource, ChecksumAlgorithm: c.Checksum.Algorithm, ChecksumValue: c.Checksum.Value})
	}
}

func presentChecks(d lrp.CheckDefinition) *bbspb.CheckDefinition {
	if len(d.Liveness)+len(d.Readiness) == 0 {
		return nil
	}
	return &bbspb.CheckDefinition{Checks: presentCheckList(d.Liveness), ReadinessChecks: presentCheckList(d.Readiness), LogSource: d.LogSource}
}

func presentCheckList(all []lrp.Check) (list []*bbspb.Check) {
	for _, c := range all {
		timeout, interval := uint64(c.InvocationTimeout.Milliseconds()), uint64(c.Interval.Milliseconds())
		switch c.Type {
		case lrp.CheckHTTP:
			list = append(list, &bbspb.Check{Http: &bbspb.HTTPCheck{Port: uint32(c.Port), Path: c.Path, RequestTimeoutMs: timeout, IntervalMs: interval}})
		case lrp.CheckPort:
			list = append(list, &bbspb.Check{Tcp: &bbspb.TCPCheck{Port: uint32(c.Port), ConnectTimeoutMs: timeout, IntervalMs: interval}})
		case lrp.CheckProcess:
		}
	}
	return list
}

// presentRule is a rule for each range of ports, and one for the single ports:
// Diego's has either.
func presentRule(r lrp.EgressRule) (rules []*bbspb.SecurityGroupRule) {
	rule := func() *bbspb.SecurityGroupRule {
		return &bbspb.SecurityGroupRule{Protocol: r.Protocol, Destinations: r.Destinations, Log: r.Log}
	}
	switch {
	case strings.HasPrefix(r.Protocol, "icmp"):
		one := rule()
		one.IcmpInfo = &bbspb.ICMPInfo{Type: int32(r.ICMPType), Code: int32(r.ICMPCode)}
		return append(rules, one)
	case r.Ports == "":
		return append(rules, rule())
	}
	var ports []uint32
	for part := range strings.SplitSeq(r.Ports, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			ports = append(ports, port(first))
			continue
		}
		one := rule()
		one.PortRange = &bbspb.PortRange{Start: port(first), End: port(last)}
		rules = append(rules, one)
	}
	if len(ports) > 0 {
		one := rule()
		one.Ports = ports
		rules = append(rules, one)
	}
	return rules
}

func port(s string) uint32 {
	n, _ := strconv.ParseUint(strings.TrimSpace(s), 10, 16) // the API checked it
	return uint32(n)
}
