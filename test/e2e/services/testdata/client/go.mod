module client

go 1.26

require (
	github.com/go-sql-driver/mysql v1.10.1
	github.com/rabbitmq/amqp091-go v1.16.0
)

require filippo.io/edwards25519 v1.2.0 // indirect
