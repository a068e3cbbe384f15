package manifest

// Env is what a group says to BOSH's agent. Only the settings are heeded.
type Env struct {
	PersistentDiskFS           string
	PersistentDiskMountOptions []string
	BOSH                       EnvBOSH
}

// EnvBOSH is env.bosh.
type EnvBOSH struct {
	Password              string
	KeepRootPassword      string
	RemoveDevTools        bool
	RemoveStaticLibraries bool
	SwapSizeMB            *int
	IPv6                  bool
	JobDirTmpfs           bool // rendered templates lie in memory
	JobDirTmpfsSize       string
	AgentTmpfs            bool
	Settings              Settings
}

// Settings are env.bosh.agent.settings, in Kubernetes' form and mostly for
// Kubernetes. Disks, the limit of retries, the grace period and pre-render ops
// also apply on this machine.
type Settings struct {
	At
	Affinity         map[string]any
	Labels           map[string]string
	Annotations      map[string]string
	DisableLogs      bool // disable_log_sidecar
	ServiceAccount   string
	AutomountToken   *bool
	ImagePullSecrets []any // {name} each
	Tolerations      []any
	EphemeralAsPVC   bool
	Disks            []Disk
	BackoffLimit     *int // jobBackoffLimit: tries of an auto-errand
	PreRenderOps     PreRenderOps
	ReplicasEnv      *bool // injectReplicasEnv
	GraceSeconds     *int  // terminationGracePeriodSeconds
	DNS              any
}

// Disk is a further volume of the containers that the filter matches; "" matches all.
type Disk struct {
	PVC, Volume, VolumeMount map[string]any
	JobName, ProcessName     string
}

// PreRenderOps are ops that change what templates are rendered from.
type PreRenderOps struct{ BPM, InstanceGroup []any }

func agentEnv(o *object) (e Env) {
	if o == nil {
		return e
	}
	defer o.done()
	return Env{o.text("persistent_disk_fs"), o.texts("persistent_disk_mount_options"), boshEnv(o.in("bosh"))}
}

func boshEnv(o *object) (b EnvBOSH) {
	if o == nil {
		return b
	}
	defer o.done()
	b = EnvBOSH{Password: o.text("password"), KeepRootPassword: o.text("keep_root_password"), RemoveDevTools: o.boolean("remove_dev_tools"),
		RemoveStaticLibraries: o.boolean("remove_static_libraries"), SwapSizeMB: o.maybe("swap_size")}
	if v6 := o.in("ipv6"); v6 != nil {
		b.IPv6 = v6.boolean("enable")
		v6.done()
	}
	if dir := o.in("job_dir"); dir != nil {
		b.JobDirTmpfs, b.JobDirTmpfsSize = dir.boolean("tmpfs"), dir.text("tmpfs_size")
		dir.done()
	}
	if agent := o.in("agent"); agent != nil {
		b.AgentTmpfs, b.Settings = agent.boolean("tmpfs"), settings(agent.in("settings"))
		agent.done()
	}
	return b
}

func settings(o *object) (s Settings) {
	if o == nil {
		return s
	}
	defer o.done()
	s = Settings{At: o.At, Affinity: o.values("affinity"), Labels: o.strings("labels"), Annotations: o.strings("annotations"),
		DisableLogs: o.boolean("disable_log_sidecar"), ServiceAccount: o.text("serviceAccountName"), AutomountToken: o.switched("automountServiceAccountToken"),
		ImagePullSecrets: o.anys("imagePullSecrets"), Tolerations: o.anys("tolerations"), EphemeralAsPVC: o.boolean("ephemeralAsPVC"),
		BackoffLimit: o.maybe("jobBackoffLimit"), ReplicasEnv: o.switched("injectReplicasEnv"), GraceSeconds: o.maybe("terminationGracePeriodSeconds"), DNS: o.any("dns")}
	o.each("disks", "name", func(d *object) { s.Disks = append(s.Disks, disk(d)) })
	if ops := o.in("preRenderOps"); ops != nil {
		s.PreRenderOps = PreRenderOps{ops.anys("bpm"), ops.anys("instanceGroup")}
		ops.done()
	}
	return s
}

func disk(o *object) Disk {
	d := Disk{PVC: o.values("pvc"), Volume: o.values("volume"), VolumeMount: o.values("volumeMount")}
	if f := o.in("filters"); f != nil {
		d.JobName, d.ProcessName = f.text("job_name"), f.text("process_name")
		f.done()
	}
	return d
}
