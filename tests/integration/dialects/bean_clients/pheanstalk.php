<?php
// Pheanstalk, unmodified. PORT is in the environment. With an argument: reserves a job and never ends.
require 'Pheanstalk/autoload.php';

use Pheanstalk\Pheanstalk;

$client = Pheanstalk::create('127.0.0.1', (int) getenv('PORT'));
$client->useTube('pheanstalk')->watchOnly('pheanstalk');
if ($argc > 1) {
    $job = $client->reserve();
    echo $job->getId(), "\n";
    while (true) {
        sleep(100);
    }
}
$put = $client->put('from php', 7, 0, 40);
$job = $client->reserveWithTimeout(30);
$client->touch($job);
$client->release($job, 7, 0);
$job = $client->reserve();
$client->bury($job);
$kicked = $client->kick(9);
$peeked = $client->peekReady();
$stats = $client->statsJob($put);
$last = $client->reserveWithTimeout(30);
$client->delete($last);
$late = $client->put('late', 7, 1000);
$delayed = $client->peekDelayed();
$client->kickJob($late);
$client->pauseTube('pheanstalk', 1000);
$none = $client->reserveWithTimeout(0);
$client->resumeTube('pheanstalk');
$client->delete($client->reserveWithTimeout(30));
echo json_encode([
    'data' => $last->getData(),
    'same' => $peeked->getId() == $put->getId(),
    'kicked' => $kicked,
    'ttr' => (int) $stats['ttr'],
    'delayed' => $delayed->getData(),
    'none' => $none === null,
    'tubes' => in_array('pheanstalk', $client->listTubes()),
    'ready' => (int) $client->statsTube('pheanstalk')['current-jobs-ready'],
]), "\n";
