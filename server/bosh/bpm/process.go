package bpm

// Config is a bpm.yml.
type Config struct {
	Processes []Process `yaml:"processes"`
	// Unknown are the paths of keys that bpm passes over.
	Unknown []string `yaml:"-"`
}

// Process is one process of a job, and what contains it.
type Process struct {
	Name              string            `yaml:"name"`       // required
	Executable        string            `yaml:"executable"` // required
	Args              []string          `yaml:"args"`
	Env               map[string]string `yaml:"env"`
	Workdir           string            `yaml:"workdir"`
	Hooks             Hooks             `yaml:"hooks"`
	Capabilities      []string          `yaml:"capabilities"` // without CAP_
	Limits            Limits            `yaml:"limits"`
	EphemeralDisk     bool              `yaml:"ephemeral_disk"`
	PersistentDisk    bool              `yaml:"persistent_disk"`
	AdditionalVolumes []Volume          `yaml:"additional_volumes"`
	Unsafe            Unsafe            `yaml:"unsafe"`
	ShutdownSignal    string            `yaml:"shutdown_signal"` // TERM or INT; "" is TERM
	// Requests are Kubernetes' resource requests; only a deployment manifest has
	// them, bpm does not.
	Requests map[string]string `yaml:"requests"`
}

// Hooks are programs around the life of a process.
type Hooks struct {
	PreStart string `yaml:"pre_start"` // run before each start, for at most PreStartLimit; "" is none
}

// Limits bound a process; zero means no limit.
type Limits struct {
	Memory    Bytes  `yaml:"memory"`
	OpenFiles uint64 `yaml:"open_files"`
	Processes int64  `yaml:"processes"`
	// CoreFileSize is in bytes; nil leaves what the host has set.
	CoreFileSize *uint64 `yaml:"core_file_size"`
}

// Volume is a directory that a process sees at its own path.
type Volume struct {
	Path            string `yaml:"path"`
	Writable        bool   `yaml:"writable"`
	AllowExecutions bool   `yaml:"allow_executions"`
	MountOnly       bool   `yaml:"mount_only"` // is neither made nor given to the user
	Shared          bool   `yaml:"shared"`     // mounts inside are seen by all
}

// Unsafe takes bounds away.
type Unsafe struct {
	Privileged          bool     `yaml:"privileged"`
	UnrestrictedVolumes []Volume `yaml:"unrestricted_volumes"` // paths may be globs
	HostPIDNamespace    bool     `yaml:"host_pid_namespace"`
}
