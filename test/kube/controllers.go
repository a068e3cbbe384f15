package main

import (
	"context"
	"os"
	"sync"
	"time"

	cacheddiscovery "k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/certificates/rootcacertpublisher"
	"k8s.io/kubernetes/pkg/controller/cronjob"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/disruption"
	"k8s.io/kubernetes/pkg/controller/endpointslice"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/controller/nodelifecycle"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/serviceaccount"
	"k8s.io/kubernetes/pkg/controller/statefulset"
	"k8s.io/kubernetes/pkg/controller/volume/persistentvolume"
	"k8s.io/kubernetes/pkg/controller/volume/pvcprotection"
)

// workers are those of each controller.
const workers = 5

// controllers runs those of kube-controller-manager that what is rendered needs,
// with its numbers. The program itself links the volumes' drivers too, which
// takes longer to compile than all that is here. Pods find the certificates of
// caFile next to their tokens.
func controllers(ctx context.Context, kubeconfig, caFile string) error {
	ca, err := os.ReadFile(caFile)
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(cacheddiscovery.NewMemCacheClient(client.Discovery()))
	scales, err := scale.NewForConfig(config, mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(client.Discovery()))
	if err != nil {
		return err
	}
	log, shared, started := klog.FromContext(ctx), informers.NewSharedInformerFactory(client, 0), make(chan struct{})
	core, apps, batch := shared.Core().V1(), shared.Apps().V1(), shared.Batch().V1()
	pods, nodes, claims := core.Pods(), core.Nodes(), core.PersistentVolumeClaims()

	deployments, err := deployment.NewDeploymentController(ctx, apps.Deployments(), apps.ReplicaSets(), pods, client)
	if err != nil {
		return err
	}
	jobs, err := job.NewController(ctx, client, pods, batch.Jobs(), nil, nil)
	if err != nil {
		return err
	}
	cronJobs, err := cronjob.NewControllerV2(ctx, batch.Jobs(), batch.CronJobs(), client)
	if err != nil {
		return err
	}
	accounts, err := serviceaccount.NewServiceAccountsController(log, core.ServiceAccounts(), core.Namespaces(), client, serviceaccount.DefaultServiceAccountsControllerOptions())
	if err != nil {
		return err
	}
	lives, err := nodelifecycle.NewNodeLifecycleController(ctx, shared.Coordination().V1().Leases(), pods, nodes, apps.DaemonSets(), client,
		5*time.Second, time.Minute, 50*time.Second, 0.1, 0.01, 50, 0.55)
	if err != nil {
		return err
	}
	volumes, err := persistentvolume.NewController(ctx, persistentvolume.ControllerParameters{
		KubeClient: client, SyncPeriod: 15 * time.Second, VolumeInformer: core.PersistentVolumes(), ClaimInformer: claims,
		ClassInformer: shared.Storage().V1().StorageClasses(), PodInformer: pods, NodeInformer: nodes, EnableDynamicProvisioning: true,
	})
	if err != nil {
		return err
	}
	protection, err := pvcprotection.NewPVCProtectionController(log, claims, pods, client)
	if err != nil {
		return err
	}
	publisher, err := rootcacertpublisher.NewPublisher(core.ConfigMaps(), core.Namespaces(), client, ca)
	if err != nil {
		return err
	}
	metas := metadatainformer.NewSharedInformerFactory(meta, 0)
	garbage, err := garbagecollector.NewGarbageCollector(ctx, client, meta, mapper, garbagecollector.DefaultIgnoredResources(), informerfactory.NewInformerFactory(shared, metas), started)
	if err != nil {
		return err
	}
	sets := statefulset.NewStatefulSetController(ctx, pods, apps.StatefulSets(), claims, apps.ControllerRevisions(), client)
	replicas := replicaset.NewReplicaSetController(ctx, apps.ReplicaSets(), pods, client, replicaset.BurstReplicas)
	slices := endpointslice.NewController(ctx, pods, core.Services(), nodes, shared.Discovery().V1().EndpointSlices(), 100, client, 0)
	budgets := disruption.NewDisruptionController(ctx, pods, shared.Policy().V1().PodDisruptionBudgets(), core.ReplicationControllers(),
		apps.ReplicaSets(), apps.Deployments(), apps.StatefulSets(), client, mapper, scales, client.Discovery())

	var running sync.WaitGroup
	for _, run := range []func(context.Context, int){deployments.Run, jobs.Run, cronJobs.Run, accounts.Run, publisher.Run, protection.Run, sets.Run, replicas.Run, slices.Run} {
		running.Go(func() { run(ctx, workers) })
	}
	for _, run := range []func(context.Context){lives.Run, volumes.Run, budgets.Run} {
		running.Go(func() { run(ctx) })
	}
	running.Go(func() { garbage.Run(ctx, workers, 30*time.Second) })
	running.Go(func() { garbage.Sync(ctx, client.Discovery(), 30*time.Second) })
	shared.Start(ctx.Done())
	metas.Start(ctx.Done())
	close(started)
	running.Wait()
	return nil
}
