package databroker

import (
	"context"
	"time"

	"cupola/server/logcache"
	"cupola/store"
	"cupola/store/cf"
)

// The metrics of service instances beside those of their containers.
const (
	metricDisk        = "persistent_disk"
	metricDiskQuota   = "persistent_disk_quota"
	metricConnections = "connections"
)

// measured is an instance of which something can be measured.
type measured struct {
	*cf.DataInstance
	tags      map[string]string
	container string // the GUID of the one that runs; "" for none
}

// Measure keeps how full the volumes of the instances are, and how many connections their servers have: what a cell does
// not measure of containers.
func (s *Service) Measure(ctx context.Context, now time.Time) error {
	all, err := s.broker.running(ctx)
	if err != nil {
		return err
	}
	ports := map[string][]uint16{} // by the container's GUID
	for _, m := range all {
		if svc, _, ok := known(m.DataInstance); ok && m.container != "" && svc.engine != nil {
			ports[m.container] = svc.ports(m.TLSRequired)
		}
	}
	connections, err := s.broker.Connections(ports)
	for _, m := range all {
		metrics := s.broker.diskOf(ctx, m.DataInstance)
		if n, ok := connections[m.container]; ok {
			metrics = append(metrics, logcache.Metric{Name: metricConnections, Unit: "connections", Value: float64(n)})
		}
		if len(metrics) > 0 {
			s.broker.Gauge(logcache.Envelope{Timestamp: now, SourceID: m.GUID, InstanceID: "0", Tags: m.tags, Kind: logcache.Gauge, Metrics: metrics})
		}
	}
	return err
}

// running lists the instances that can be used, with the containers that run for them.
func (b *broker) running(ctx context.Context) (all []measured, err error) {
	containers := map[string]string{} // GUIDs, by the instance's
	for _, c := range b.Containers() {
		if guid, ok := instanceOf(c.ProcessGUID); ok {
			containers[guid] = c.GUID
		}
	}
	err = b.Store.Read(ctx, func(tx *store.Tx) error {
		rows, err := store.DataInstances.By(tx, "states", string(cf.DataReady))
		if err != nil {
			return err
		}
		for _, i := range rows {
			tags, err := LogTags(tx, i.GUID)
			if err != nil {
				return err
			}
			all = append(all, measured{i, tags, containers[i.GUID]})
		}
		return nil
	})
	return all, err
}

// diskOf is how full the volume of an instance is; nothing where it has none.
func (b *broker) diskOf(ctx context.Context, i *cf.DataInstance) []logcache.Metric {
	_, p, ok := known(i)
	if !ok || p.volumeBytes == 0 {
		return nil
	}
	used, err := b.Volumes.Used(i.GUID)
	if err != nil {
		b.Log.DebugContext(ctx, "volume was not measured", "instance_guid", i.GUID, "err", err)
		return nil
	}
	return []logcache.Metric{{Name: metricDisk, Unit: "bytes", Value: float64(used)}, {Name: metricDiskQuota, Unit: "bytes", Value: float64(p.volumeBytes)}}
}
