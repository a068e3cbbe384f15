package model

import (
	"strconv"

	"cupola/runtime/lrp"
	"cupola/server/bbs/bbspb"
)

// Actual is an ActualLRP as a message. d is its DesiredLRP, where there still is
// one: it has the metric tags. zone is that of its cell.
func Actual(a *lrp.Actual, d *bbspb.DesiredLRP, zone string) *bbspb.ActualLRP {
	m := &bbspb.ActualLRP{
		Key:         &bbspb.ActualLRPKey{ProcessGuid: a.ProcessGUID, Index: int32(a.Index), Domain: a.Domain},
		InstanceKey: &bbspb.ActualLRPInstanceKey{InstanceGuid: a.InstanceGUID, CellId: a.CellID},
		NetInfo:     &bbspb.ActualLRPNetInfo{},
		CrashCount:  int32(a.CrashCount), CrashReason: a.CrashReason, State: string(a.State), PlacementError: a.PlacementError,
		Since: a.Since.UnixNano(), ModificationTag: Tag(a.Tag),
	}
	if a.State == lrp.Running {
		m.NetInfo = netInfo(a)
		m.Routable, m.AvailabilityZone = &a.Ready, zone
		for _, host := range InternalHosts(d) {
			m.InternalRoutes = append(m.InternalRoutes, &bbspb.InternalRoute{Hostname: host})
		}
	}
	if a.InstanceGUID != "" {
		m.MetricTags = metricTags(a, d.GetMetricTags())
	}
	return m
}

// netInfo says where an instance is reached. Nothing is mapped: this machine,
// and all for which it routes, reach the container itself. The TLS port for other containers has no host port in
// Diego either.
func netInfo(a *lrp.Actual) *bbspb.ActualLRPNetInfo {
	n := &bbspb.ActualLRPNetInfo{Address: a.Address, InstanceAddress: a.Address, PreferredAddress: bbspb.PreferredAddress_PREFERRED_ADDRESS_INSTANCE}
	for _, m := range a.PortMappings() {
		n.Ports = append(n.Ports, &bbspb.PortMapping{ContainerPort: uint32(m.Port), HostPort: uint32(m.Port),
			ContainerTlsProxyPort: uint32(m.TLSPort), HostTlsProxyPort: uint32(m.ExternalTLSPort())})
	}
	return n
}

func metricTags(a *lrp.Actual, tags map[string]*bbspb.MetricTagValue) map[string]string {
	out := make(map[string]string, len(tags))
	for k, v := range tags {
		switch v.GetDynamic() {
		case bbspb.MetricTagDynamic_METRIC_TAG_INDEX:
			out[k] = strconv.Itoa(a.Index)
		case bbspb.MetricTagDynamic_METRIC_TAG_INSTANCE_GUID:
			out[k] = a.InstanceGUID
		default:
			out[k] = v.GetStatic()
		}
	}
	return out
}

// Tag is a modification tag as a message.
func Tag(t lrp.Tag) *bbspb.ModificationTag {
	return &bbspb.ModificationTag{Epoch: t.Epoch, Index: t.Index}
}

// Info is what of an ActualLRP can change, as the event of a change has it.
func Info(a *bbspb.ActualLRP) *bbspb.ActualLRPInfo {
	return &bbspb.ActualLRPInfo{NetInfo: a.NetInfo, CrashCount: a.CrashCount, CrashReason: a.CrashReason, State: a.State,
		PlacementError: a.PlacementError, Since: a.Since, ModificationTag: a.ModificationTag, Presence: a.Presence,
		Routable: a.Routable, AvailabilityZone: a.AvailabilityZone}
}
