package model

import (
	"google.golang.org/protobuf/proto"

	"cupola/server/bbs/bbspb"
)

// Updated is a DesiredLRP with an update; d stays as it is.
func Updated(d *bbspb.DesiredLRP, u *bbspb.DesiredLRPUpdate) *bbspb.DesiredLRP {
	next := proto.CloneOf(d)
	if u != nil && u.Instances != nil {
		next.Instances = *u.Instances
	}
	if u.GetRoutes() != nil {
		next.Routes = u.Routes
	}
	if u != nil && u.Annotation != nil {
		next.Annotation = *u.Annotation
	}
	if u.GetMetricTags() != nil {
		next.MetricTags = u.MetricTags
	}
	if u != nil && u.ImageUsername != nil && u.ImagePassword != nil {
		next.ImageUsername, next.ImagePassword = *u.ImageUsername, *u.ImagePassword
	}
	return next
}

// SchedulingInfo is what of a DesiredLRP a scheduler needs.
func SchedulingInfo(d *bbspb.DesiredLRP) *bbspb.DesiredLRPSchedulingInfo {
	placement := &bbspb.VolumePlacement{}
	for _, m := range d.VolumeMounts {
		placement.DriverNames = append(placement.DriverNames, m.GetDriver())
	}
	return &bbspb.DesiredLRPSchedulingInfo{
		Key:        &bbspb.DesiredLRPKey{ProcessGuid: d.ProcessGuid, Domain: d.Domain, LogGuid: d.LogGuid},
		Annotation: d.Annotation, Instances: d.Instances,
		Resource: &bbspb.DesiredLRPResource{MemoryMb: d.MemoryMb, DiskMb: d.DiskMb, RootFs: d.RootFs, MaxPids: d.MaxPids},
		Routes:   routes(d.Routes), ModificationTag: d.ModificationTag, VolumePlacement: placement, PlacementTags: d.PlacementTags,
	}
}

// routes is never nil: Diego's clients expect the message.
func routes(r *bbspb.Routes) *bbspb.Routes {
	if r == nil {
		return &bbspb.Routes{}
	}
	return r
}

// RoutingInfo is what of a DesiredLRP a route emitter needs.
func RoutingInfo(d *bbspb.DesiredLRP) *bbspb.DesiredLRP {
	return &bbspb.DesiredLRP{ProcessGuid: d.ProcessGuid, Domain: d.Domain, LogGuid: d.LogGuid, Instances: d.Instances,
		Routes: routes(d.Routes), ModificationTag: d.ModificationTag, MetricTags: d.MetricTags}
}

// DownTo2 is a DesiredLRP for the routes of revision 2, whose clients know no
// image layers: shared ones become cached dependencies, exclusive ones are
// downloaded during setup.
func DownTo2(d *bbspb.DesiredLRP) *bbspb.DesiredLRP {
	if len(d.ImageLayers) == 0 {
		return d
	}
	next := proto.CloneOf(d)
	shared, downloads := split(d.ImageLayers, d.LegacyDownloadUser)
	next.CachedDependencies = append(shared, next.CachedDependencies...)
	next.Setup = before(downloads, next.Setup)
	next.ImageLayers = nil
	return next
}

// TaskDownTo2 is DownTo2 for a Task.
func TaskDownTo2(t *bbspb.Task) *bbspb.Task {
	if len(t.GetDefinition().GetImageLayers()) == 0 {
		return t
	}
	next := proto.CloneOf(t)
	d := next.Definition
	shared, downloads := split(d.ImageLayers, d.LegacyDownloadUser)
	d.CachedDependencies = append(shared, d.CachedDependencies...)
	d.Action = before(downloads, d.Action)
	d.ImageLayers = nil
	return next
}

var algorithms = map[bbspb.DigestAlgorithm]string{
	bbspb.DigestAlgorithm_DIGEST_ALGORITHM_SHA256: "sha256",
	bbspb.DigestAlgorithm_DIGEST_ALGORITHM_SHA512: "sha512",
}

func split(layers []*bbspb.ImageLayer, user string) (shared []*bbspb.CachedDependency, downloads []*bbspb.Action) {
	for _, l := range layers {
		algorithm := algorithms[l.GetDigestAlgorithm()]
		key := l.GetDigestValue()
		if algorithm != "" {
			key = algorithm + ":" + key
		}
		if l.GetLayerType() == bbspb.LayerType_LAYER_TYPE_SHARED {
			shared = append(shared, &bbspb.CachedDependency{Name: l.GetName(), From: l.GetUrl(), To: l.GetDestinationPath(), CacheKey: key,
				ChecksumAlgorithm: algorithm, ChecksumValue: l.GetDigestValue()})
			continue
		}
		downloads = append(downloads, &bbspb.Action{Download: &bbspb.Download{Artifact: l.GetName(), From: l.GetUrl(), To: l.GetDestinationPath(),
			CacheKey: key, User: user, ChecksumAlgorithm: algorithm, ChecksumValue: l.GetDigestValue()}})
	}
	return shared, downloads
}

// before is the downloads, all at once, and then an action.
func before(downloads []*bbspb.Action, a *bbspb.Action) *bbspb.Action {
	if len(downloads) == 0 {
		return a
	}
	all := &bbspb.Action{Parallel: &bbspb.Actions{Actions: downloads}}
	if a == nil {
		return all
	}
	return &bbspb.Action{Serial: &bbspb.Actions{Actions: []*bbspb.Action{all, a}}}
}
