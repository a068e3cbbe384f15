package main

import (
	"context"
	"fmt"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

// queue publishes persistent messages, one a line, to the durable queue q, and waits until
// the server has confirmed them; "all" reads the messages that are there.
func queue(ctx context.Context, c credentials, request string) (string, error) {
	config, err := c.trust()
	if err != nil {
		return "", err
	}
	conn, err := amqp.DialTLS(c.URI, config) // without TLS if the URI says so
	if err != nil {
		return "", err
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return "", err
	}
	q, err := ch.QueueDeclare("q", true, false, false, false, nil)
	if err != nil {
		return "", err
	}
	if request == "all" {
		var all strings.Builder
		for range q.Messages { // they stay, since none is acknowledged
			m, _, err := ch.Get("q", false)
			if err != nil {
				return "", err
			}
			all.Write(m.Body)
		}
		return all.String(), nil
	}
	if err := ch.Confirm(false); err != nil {
		return "", err
	}
	for line := range strings.Lines(request) {
		confirmation, err := ch.PublishWithDeferredConfirmWithContext(ctx, "", "q", true, false, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte(line)})
		if err != nil {
			return "", err
		}
		if ok, err := confirmation.WaitContext(ctx); err != nil || !ok {
			return "", fmt.Errorf("not confirmed: %v", err)
		}
	}
	return "done", nil
}
