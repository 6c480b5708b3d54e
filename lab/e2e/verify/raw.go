package main

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/makegood-dev/makegood/lab/e2e/signed"
)

// Two services are asked one question each. Their clients would be two dependencies, and the newest one of
// CloudWatch speaks a protocol that no stand-in does.

// monitoring asks CloudWatch.
func (w *world) monitoring(ctx context.Context, form url.Values) ([]byte, error) {
	form.Set("Version", "2010-08-01")
	return signed.Ask(ctx, w.config, signed.Question{
		Service: "monitoring", Headers: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, Body: []byte(form.Encode()),
	})
}

// counted returns the sum of a metric since the orders began.
func (w *world) counted(ctx context.Context, namespace, metric string, dimensions ...string) (float64, error) {
	form := url.Values{
		"Action": {"GetMetricStatistics"}, "Namespace": {namespace}, "MetricName": {metric}, "Statistics.member.1": {"Sum"},
		"StartTime": {w.began.UTC().Truncate(time.Minute).Format(time.RFC3339)}, "EndTime": {time.Now().UTC().Format(time.RFC3339)}, "Period": {"60"},
	}
	for i := 0; i+1 < len(dimensions); i += 2 {
		prefix := "Dimensions.member." + strconv.Itoa(i/2+1)
		form.Set(prefix+".Name", dimensions[i])
		form.Set(prefix+".Value", dimensions[i+1])
	}
	body, err := w.monitoring(ctx, form)
	if err != nil {
		return 0, err
	}
	var answer struct {
		Sums []float64 `xml:"GetMetricStatisticsResult>Datapoints>member>Sum"`
	}
	if err := xml.Unmarshal(body, &answer); err != nil {
		return 0, fmt.Errorf("CloudWatch answers %.300s: %w", body, err)
	}
	sum := 0.0
	for _, one := range answer.Sums {
		sum += one
	}
	return sum, nil
}

// retained are the outputs of a stack that say what it does not delete.
func (w *world) retained(ctx context.Context, name string) (map[string]string, error) {
	if name != stackName {
		return nil, nil
	}
	return w.outputs(ctx, name)
}

// deleteTable deletes the table, which is protected from that in prod.
func (w *world) deleteTable(ctx context.Context, table string) error {
	db := dynamodb.NewFromConfig(w.config)
	if _, err := db.UpdateTable(ctx, &dynamodb.UpdateTableInput{TableName: &table, DeletionProtectionEnabled: aws.Bool(false)}); err != nil {
		return fmt.Errorf("take the protection off table %s: %w", table, err)
	}
	if err := dynamodb.NewTableExistsWaiter(db).Wait(ctx, &dynamodb.DescribeTableInput{TableName: &table}, tearDownFor); err != nil {
		return fmt.Errorf("table %s: %w", table, err)
	}
	_, err := db.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &table})
	return err
}

// deleteRetained deletes the table, and schedules the deletion of the key, which cannot be had sooner than in
// seven days.
func (w *world) deleteRetained(ctx context.Context, outputs map[string]string) error {
	var wrong []error
	if table := outputs["TableName"]; table != "" {
		wrong = append(wrong, w.deleteTable(ctx, table))
	}
	if key := outputs["KeyArn"]; key != "" {
		_, err := signed.Ask(ctx, w.config, signed.Question{
			Service: "kms", Body: fmt.Appendf(nil, `{"KeyId":%q,"PendingWindowInDays":7}`, key),
			Headers: map[string]string{"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": "TrentService.ScheduleKeyDeletion"},
		})
		wrong = append(wrong, err)
	}
	return errors.Join(wrong...)
}
