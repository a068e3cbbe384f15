package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// provisioner is the one of StorageClasses whose volumes are pretended.
const provisioner = "pretended"

// look is how often the kubelet looks at what there is.
const look = 200 * time.Millisecond

// kubelet pretends to be that of all nodes, and the provisioner of their
// volumes. No pod has any process: one that is scheduled runs and is ready if all
// Secrets are there that it mounts, and one that is to end is complete.
type kubelet struct {
	kubernetes.Interface
	leased time.Time
	made   int // addresses of pods
}

func pretend(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	k := &kubelet{Interface: client}
	for ; ctx.Err() == nil; time.Sleep(look) {
		for _, step := range []func(context.Context) error{k.nodes, k.pods, k.claims} {
			if err := step(ctx); err != nil {
				klog.ErrorS(err, "Try again")
			}
		}
	}
	return nil
}

// nodes keeps all nodes ready.
func (k *kubelet) nodes(ctx context.Context) error {
	all, err := k.CoreV1().Nodes().List(ctx, meta.ListOptions{})
	if err != nil {
		return err
	}
	renew := time.Since(k.leased) > 10*time.Second
	for _, n := range all.Items {
		fresh := len(n.Status.Conditions) == 0
		if fresh {
			n.Status.Conditions = []core.NodeCondition{{Type: core.NodeReady, Status: core.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: meta.Now(), LastTransitionTime: meta.Now()}}
			if _, err := k.CoreV1().Nodes().UpdateStatus(ctx, &n, meta.UpdateOptions{}); err != nil {
				return err
			}
		}
		if fresh || renew {
			if err := k.lease(ctx, n.Name); err != nil {
				return err
			}
		}
	}
	if renew {
		k.leased = time.Now()
	}
	return nil
}

// lease reports that a node lives.
func (k *kubelet) lease(ctx context.Context, node string) error {
	now, seconds := meta.NowMicro(), int32(40)
	leases := k.CoordinationV1().Leases(core.NamespaceNodeLease)
	spec := coordination.LeaseSpec{HolderIdentity: &node, LeaseDurationSeconds: &seconds, RenewTime: &now}
	l, err := leases.Get(ctx, node, meta.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(ctx, &coordination.Lease{ObjectMeta: meta.ObjectMeta{Name: node}, Spec: spec}, meta.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	l.Spec = spec
	_, err = leases.Update(ctx, l, meta.UpdateOptions{})
	return err
}

// pods brings each pod one step on.
func (k *kubelet) pods(ctx context.Context) error {
	all, err := k.CoreV1().Pods("").List(ctx, meta.ListOptions{})
	if err != nil {
		return err
	}
	for _, p := range all.Items {
		if err := k.pod(ctx, &p); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("pod %s: %w", p.Name, err)
		}
	}
	return nil
}

func (k *kubelet) pod(ctx context.Context, p *core.Pod) error {
	switch {
	case p.Spec.NodeName == "":
		return nil
	case p.DeletionTimestamp != nil:
		now := int64(0)
		return k.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, meta.DeleteOptions{GracePeriodSeconds: &now, Preconditions: meta.NewUIDPreconditions(string(p.UID))})
	case p.Status.Phase == core.PodPending:
		if err := k.mounts(ctx, p); err != nil {
			return err
		}
		k.run(p)
	case p.Status.Phase == core.PodRunning && p.Spec.RestartPolicy != core.RestartPolicyAlways:
		complete(p)
	default:
		return nil
	}
	_, err := k.CoreV1().Pods(p.Namespace).UpdateStatus(ctx, p, meta.UpdateOptions{})
	return err
}

// mounts looks for what a pod cannot start without.
func (k *kubelet) mounts(ctx context.Context, p *core.Pod) error {
	var secrets []string
	for _, v := range p.Spec.Volumes {
		if v.Secret != nil {
			secrets = append(secrets, v.Secret.SecretName)
		}
		if v.Projected != nil {
			for _, s := range v.Projected.Sources {
				if s.Secret != nil {
					secrets = append(secrets, s.Secret.Name)
				}
			}
		}
	}
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		for _, from := range c.EnvFrom {
			if from.SecretRef != nil {
				secrets = append(secrets, from.SecretRef.Name)
			}
		}
	}
	for _, name := range secrets {
		if _, err := k.CoreV1().Secrets(p.Namespace).Get(ctx, name, meta.GetOptions{}); err != nil {
			klog.InfoS("Pod waits", "pod", p.Name, "err", err)
			return err
		}
	}
	return nil
}

func (k *kubelet) run(p *core.Pod) {
	k.made++
	now, yes := meta.Now(), true
	s := &p.Status
	s.Phase, s.StartTime, s.HostIP, s.PodIP = core.PodRunning, &now, "127.0.0.1", fmt.Sprintf("10.64.%d.%d", k.made/250, k.made%250+1)
	s.HostIPs, s.PodIPs = []core.HostIP{{IP: s.HostIP}}, []core.PodIP{{IP: s.PodIP}}
	for _, kind := range []core.PodConditionType{core.PodInitialized, core.ContainersReady, core.PodReady} {
		s.Conditions = append(s.Conditions, core.PodCondition{Type: kind, Status: core.ConditionTrue, LastTransitionTime: now})
	}
	for _, c := range p.Spec.InitContainers {
		s.InitContainerStatuses = append(s.InitContainerStatuses, core.ContainerStatus{Name: c.Name, Image: c.Image, Ready: true, State: ended()})
	}
	for _, c := range p.Spec.Containers {
		state := core.ContainerState{Running: &core.ContainerStateRunning{StartedAt: now}}
		s.ContainerStatuses = append(s.ContainerStatuses, core.ContainerStatus{Name: c.Name, Image: c.Image, Ready: true, Started: &yes, State: state})
	}
}

func complete(p *core.Pod) {
	p.Status.Phase = core.PodSucceeded
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == core.PodReady || c.Type == core.ContainersReady {
			c.Status, c.Reason = core.ConditionFalse, "PodCompleted"
		}
	}
	for i := range p.Status.ContainerStatuses {
		c := &p.Status.ContainerStatuses[i]
		c.Ready, c.Started, c.State = false, new(bool), ended()
	}
}

func ended() core.ContainerState {
	return core.ContainerState{Terminated: &core.ContainerStateTerminated{Reason: "Completed", StartedAt: meta.Now(), FinishedAt: meta.Now()}}
}

// claims makes volumes for claims: Kubernetes' own controller binds them.
func (k *kubelet) claims(ctx context.Context) error {
	all, err := k.CoreV1().PersistentVolumeClaims("").List(ctx, meta.ListOptions{})
	if err != nil {
		return err
	}
	for _, c := range all.Items {
		if c.Spec.VolumeName != "" || c.Annotations["volume.kubernetes.io/storage-provisioner"] != provisioner {
			continue
		}
		volume := &core.PersistentVolume{ObjectMeta: meta.ObjectMeta{Name: "pvc-" + string(c.UID), Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": provisioner}}, Spec: core.PersistentVolumeSpec{
			Capacity: c.Spec.Resources.Requests, AccessModes: c.Spec.AccessModes, StorageClassName: *c.Spec.StorageClassName, VolumeMode: c.Spec.VolumeMode,
			PersistentVolumeReclaimPolicy: core.PersistentVolumeReclaimDelete, PersistentVolumeSource: core.PersistentVolumeSource{HostPath: &core.HostPathVolumeSource{Path: "/nowhere"}},
			ClaimRef: &core.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: c.Namespace, Name: c.Name, UID: c.UID, ResourceVersion: c.ResourceVersion},
		}}
		if _, err := k.CoreV1().PersistentVolumes().Create(ctx, volume, meta.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("claim %s: %w", c.Name, err)
		}
	}
	return nil
}
