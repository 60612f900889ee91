// Go's SDK: creates a queue, sends a batch, receives and deletes it; an unknown queue has the code of the SDK.
package main

import (
	"fmt"
	"os"

	"github.com/aws/aws-sdk-go/aws"
	"github.com/aws/aws-sdk-go/aws/awserr"
	"github.com/aws/aws-sdk-go/aws/session"
	"github.com/aws/aws-sdk-go/service/sqs"
)

func must(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func main() {
	conf := aws.NewConfig().WithEndpoint(os.Getenv("ENDPOINT")).WithRegion("us-east-1")
	client := sqs.New(session.Must(session.NewSession(conf)))
	made, err := client.CreateQueue(&sqs.CreateQueueInput{QueueName: aws.String("go"),
		Attributes: map[string]*string{"VisibilityTimeout": aws.String("60"), "DelaySeconds": aws.String("0")}})
	must(err)
	var entries []*sqs.SendMessageBatchRequestEntry
	for i := 0; i < 10; i++ {
		entries = append(entries, &sqs.SendMessageBatchRequestEntry{Id: aws.String(fmt.Sprint("m", i)),
			MessageBody: aws.String(fmt.Sprint("body ", i)),
			MessageAttributes: map[string]*sqs.MessageAttributeValue{
				"n": {DataType: aws.String("Number"), StringValue: aws.String(fmt.Sprint(i))}}})
	}
	sent, err := client.SendMessageBatch(&sqs.SendMessageBatchInput{QueueUrl: made.QueueUrl, Entries: entries})
	must(err)
	got, err := client.ReceiveMessage(&sqs.ReceiveMessageInput{QueueUrl: made.QueueUrl,
		MaxNumberOfMessages: aws.Int64(10), MessageAttributeNames: []*string{aws.String("All")}})
	must(err)
	for _, m := range got.Messages {
		_, err = client.DeleteMessage(&sqs.DeleteMessageInput{QueueUrl: made.QueueUrl, ReceiptHandle: m.ReceiptHandle})
		must(err)
	}
	_, err = client.GetQueueUrl(&sqs.GetQueueUrlInput{QueueName: aws.String("none")})
	code := ""
	if known, ok := err.(awserr.Error); ok {
		code = known.Code()
	}
	fmt.Println(len(sent.Successful), len(got.Messages), *got.Messages[9].MessageAttributes["n"].StringValue,
		code == sqs.ErrCodeQueueDoesNotExist)
}
