package model

import (
	"cupola/runtime/lrp"
	"cupola/server/bbs/bbspb"
)

// PresentTask is a task or a staging of Cloud Foundry as a message. run is what
// it runs; the zero value where that is not known any longer.
func PresentTask(t *lrp.Task, run lrp.RunInfo) *bbspb.Task {
	return &bbspb.Task{
		Definition: presentDefinition(run), TaskGuid: t.GUID, Domain: t.Domain, State: taskStates[t.State], CellId: t.CellID,
		CreatedAt: nanoseconds(t.CreatedAt), UpdatedAt: nanoseconds(t.UpdatedAt),
		Result: string(t.Result), Failed: t.Failed, FailureReason: t.FailureReason,
		RejectionCount: int32(t.Rejections), RejectionReason: t.RejectionReason,
	}
}

// presentDefinition presents the fields that a task and a DesiredLRP share.
func presentDefinition(run lrp.RunInfo) *bbspb.TaskDefinition {
	d := present(lrp.Desired{RunInfo: run})
	return &bbspb.TaskDefinition{
		RootFs: d.RootFs, Env: d.Env, Action: d.Action, DiskMb: d.DiskMb, MemoryMb: d.MemoryMb, CpuWeight: d.CpuWeight,
		LogSource: d.LogSource, LogGuid: d.LogGuid, MetricsGuid: d.MetricsGuid, ResultFile: run.ResultFile, EgressRules: d.EgressRules,
		CachedDependencies: d.CachedDependencies, TrustedSystemCertificatesPath: d.TrustedSystemCertificatesPath, Network: d.Network,
		PlacementTags: d.PlacementTags, MaxPids: d.MaxPids, CertificateProperties: d.CertificateProperties,
		ImageUsername: d.ImageUsername, ImagePassword: d.ImagePassword, ImageLayers: d.ImageLayers, LogRateLimit: d.LogRateLimit,
		MetricTags: d.MetricTags, VolumeMountedFiles: d.VolumeMountedFiles,
	}
}
