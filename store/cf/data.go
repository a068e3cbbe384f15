package cf

// DataState is the state of what the built-in service broker has.
type DataState string

// The states of a DataInstance and a DataBinding. A binding is not new, and never
// fails: it is made again.
const (
	DataNew      DataState = "new" // it has no volume yet
	DataMaking   DataState = "making"
	DataReady    DataState = "ready"
	DataFailed   DataState = "failed"
	DataDeleting DataState = "deleting"
)

// DataInstance is a service instance that the built-in broker has: a container
// and a volume. Its GUID is that of the platform's service instance.
type DataInstance struct {
	Resource
	Service string // its offering's name
	Plan    string // its plan's name
	Request string // what was asked for, to tell the same from another
	Secret  string // of the broker's own access; sealed at rest
	State   DataState
	Fault   string // why it is DataFailed; of one that is ready, why its upgrade failed
	// TLSRequired says that it refuses connections without TLS.
	TLSRequired bool

	// Definition is what an instance of an operator's service file is made of, in JSON; "" of
	// the built-in services. Next is what it is upgraded to. Both are sealed at rest.
	Definition, Next string
	Upgrade          UpgradeState
}

// UpgradeState says how far the upgrade of a DataInstance is that is DataMaking. A change of TLSRequired is one
// without a next Definition.
type UpgradeState string

// The states of an upgrade, in their order.
const (
	UpgradeNone     UpgradeState = ""
	UpgradePulling  UpgradeState = "pulling"  // the next image; the old container runs
	UpgradeStopping UpgradeState = "stopping" // the old container
	UpgradeStarting UpgradeState = "starting" // the new one
)

// DataBinding is who may use a DataInstance.
type DataBinding struct {
	Resource
	InstanceGUID string
	AppGUID      string // "" for a key
	Request      string // as DataInstance has it
	Password     string // sealed at rest
	State        DataState
	TLS          bool // its credentials say how to connect with TLS
}

// The states of a DataBackup. One that fails is deleted.
const (
	BackupProcessing = "PROCESSING"
	BackupReady      = "READY"
)

// Why a DataBackup was made.
const (
	BackupRequested     = "requested"
	BackupBeforeRestore = "before_restore" // of what a restore is about to replace
)

// DataBackup is the content of a DataInstance as of one moment.
type DataBackup struct {
	Resource
	InstanceGUID string
	Service      string // the offering's name
	Version      string // of the database that wrote it, like "PostgreSQL 15"; "" for files
	Reason       string
	State        string

	// What follows is set once it is ready.
	Size   int64  // of the content, in bytes
	Digest string // of the blob that holds the content
	Key    string // that the blob is sealed with, in hex; sealed at rest
}

// DataWork is the input of a job that backs up or restores a DataInstance.
type DataWork struct {
	Backup string `json:"backup"`           // to be made, or to be restored
	Safety string `json:"safety,omitempty"` // to be made before Backup is restored
}
