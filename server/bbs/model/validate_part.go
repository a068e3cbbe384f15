package model

import (
	"bytes"
	"net"
	"strings"

	"cupola/server/bbs/bbspb"
)

func (f *faults) env(all []*bbspb.Env) {
	for _, e := range all {
		f.say("invalid field: name cannot be blank", e.GetName() == "")
	}
}

func (f *faults) ports(ports []uint32) {
	for _, p := range ports {
		f.field("ports", p > 65535)
	}
}

func (f *faults) credentials(username, password string) {
	f.field("image_username", username == "" && password != "")
	f.field("image_password", username != "" && password == "")
}

// metricTags checks tags, of which source_id must be metricsGUID if that is
// given.
func (f *faults) metricTags(tags map[string]*bbspb.MetricTagValue, metricsGUID string) {
	for _, v := range tags {
		dynamic := v.GetDynamic() == bbspb.MetricTagDynamic_METRIC_TAG_INDEX || v.GetDynamic() == bbspb.MetricTagDynamic_METRIC_TAG_INSTANCE_GUID
		wrong := (v.GetStatic() != "") == dynamic
		f.field("static", wrong)
		f.field("dynamic", wrong)
	}
	f.field("source_id should match metrics_guid", len(tags) > 0 && metricsGUID != "" && tags["source_id"].GetStatic() != metricsGUID)
}

func (f *faults) dependencies(all []*bbspb.CachedDependency) {
	for _, d := range all {
		f.in("cached_dependency", func(f *faults) {
			f.field("from", d.GetFrom() == "")
			f.field("to", d.GetTo() == "")
			f.checksum(d.GetChecksumAlgorithm(), d.GetChecksumValue())
		})
	}
}

func (f *faults) layers(all []*bbspb.ImageLayer, downloadUser string) {
	exclusive := false
	for _, l := range all {
		exclusive = exclusive || l.GetLayerType() == bbspb.LayerType_LAYER_TYPE_EXCLUSIVE
		f.in("image_layer", func(f *faults) { f.layer(l) })
	}
	f.field("legacy_download_user", exclusive && downloadUser == "")
}

func (f *faults) layer(l *bbspb.ImageLayer) {
	kind, media, algorithm, value := l.GetLayerType(), l.GetMediaType(), l.GetDigestAlgorithm(), l.GetDigestValue()
	exclusive := kind == bbspb.LayerType_LAYER_TYPE_EXCLUSIVE
	known := algorithm == bbspb.DigestAlgorithm_DIGEST_ALGORITHM_SHA256 || algorithm == bbspb.DigestAlgorithm_DIGEST_ALGORITHM_SHA512
	f.field("url", l.GetUrl() == "")
	f.field("destination_path", l.GetDestinationPath() == "")
	f.field("layer_type", kind != bbspb.LayerType_LAYER_TYPE_SHARED && !exclusive)
	f.field("media_type", media < bbspb.MediaType_MEDIA_TYPE_TGZ || media > bbspb.MediaType_MEDIA_TYPE_ZIP)
	f.field("digest_algorithm", (value != "" || exclusive) && algorithm == bbspb.DigestAlgorithm_DIGEST_ALGORITHM_INVALID)
	f.field("digest_value", (algorithm != bbspb.DigestAlgorithm_DIGEST_ALGORITHM_INVALID || exclusive) && value == "")
	f.field("digest_algorithm", value != "" && !known)
}

func (f *faults) mounts(all []*bbspb.VolumeMount) {
	for _, m := range all {
		f.say("invalid volume_mount driver", m.GetDriver() == "")
		f.say("invalid volume_mount mode", m.GetMode() != "r" && m.GetMode() != "rw")
		f.say("invalid volume_mount volume id", m.GetShared() != nil && m.GetShared().GetVolumeId() == "")
		f.say("invalid volume_mount mounter id", m.GetDedicated() != nil && m.GetDedicated().GetMounterId() == "")
	}
}

// rule checks an egress rule.
func (f *faults) rule(r *bbspb.SecurityGroupRule) {
	ports, portRange, icmp := len(r.GetPorts()) > 0, r.GetPortRange() != nil, r.GetIcmpInfo() != nil
	switch r.GetProtocol() {
	case "tcp", "udp":
		f.rulePorts(r)
		f.field("icmp_info", icmp)
	case "icmp", "icmpv6":
		name := r.Protocol + "_info"
		f.field("port_range", portRange)
		f.field("ports", ports)
		f.field(name, !icmp)
	case "all":
		f.field("port_range", portRange)
		f.field("ports", ports)
		f.field("icmp_info", icmp)
	default:
		f.field("protocol", true)
	}
	f.destinations(r.GetDestinations())
}

func (f *faults) rulePorts(r *bbspb.SecurityGroupRule) {
	switch {
	case len(r.Ports) == 0 && r.PortRange == nil:
		f.say("Missing required field: ports or port_range", true)
	case len(r.Ports) > 0 && r.PortRange != nil:
		f.say("Invalid: ports and port_range provided", true)
	case r.PortRange != nil:
		start, end := r.PortRange.Start, r.PortRange.End
		f.field("port_range", start < 1 || end < 1 || start > end || end > 65535)
	}
	for _, p := range r.Ports {
		f.field("ports", p < 1 || p > 65535)
	}
}

func (f *faults) destinations(all []string) {
	if len(all) == 0 {
		f.field("destinations [ Must have at least 1 destination ]", true)
		return
	}
	var wrong []string
	for _, list := range all {
		for one := range strings.SplitSeq(list, ",") {
			if fault := badDestination(one); fault != "" {
				wrong = append(wrong, fault)
			}
		}
	}
	f.field("destinations [ "+strings.Join(wrong, ", ")+" ]", len(wrong) > 0)
}

// badDestination says what is wrong with an IP address, a CIDR or a range.
func badDestination(s string) string {
	const invalid = "Invalid IP"
	if strings.Contains(s, "/") {
		if _, _, err := net.ParseCIDR(s); err != nil {
			return err.Error()
		}
		return ""
	}
	first, last, isRange := strings.Cut(s, "-")
	a := net.ParseIP(first)
	if a == nil {
		return invalid
	}
	if b := net.ParseIP(last); isRange && (b == nil || bytes.Compare(a.To16(), b.To16()) > 0) {
		return invalid
	}
	return ""
}
