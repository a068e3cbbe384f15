package cf

// BrokerState is the state of a service broker.
type BrokerState string

// The states of a service broker.
const (
	BrokerSynchronizing BrokerState = "SYNCHRONIZING"
	BrokerSyncFailed    BrokerState = "SYNCHRONIZATION_FAILED"
	BrokerAvailable     BrokerState = "AVAILABLE"
)

// ServiceBroker is a registered broker of the Open Service Broker API.
type ServiceBroker struct {
	Resource
	Metadata
	Name      string
	URL       string
	Username  string
	Password  string // sealed at rest
	SpaceGUID string // "" for a broker of the whole platform
	State     BrokerState
}

// Busy reports whether the broker's catalog is being read: its registration may
// not be changed meanwhile.
func (b *ServiceBroker) Busy() bool { return b.State == BrokerSynchronizing }

// BrokerUpdate is the Input of a job that changes a broker: what is set once
// the broker's catalog was read with it. A nil field stays as it is.
type BrokerUpdate struct {
	Name, URL, Username, Password *string
	Metadata                      *Metadata   // the whole, as it shall be
	Before                        BrokerState // what the broker goes back to if the update fails
	Actor                         Actor
}

// The operations of jobs that read a broker's catalog. The Input of
// JobUpdateBroker is a BrokerUpdate, that of JobSyncBroker a ServiceWork.
const (
	JobSyncBroker   = "service_broker.catalog.synchronize"
	JobUpdateBroker = "service_broker.update"
)
