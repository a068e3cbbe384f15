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
	Fault   string // why it is DataFailed
}

// DataBinding is who may use a DataInstance.
type DataBinding struct {
	Resource
	InstanceGUID string
	AppGUID      string // "" for a key
	Request      string // as DataInstance has it
	Password     string // sealed at rest
	State        DataState
}
