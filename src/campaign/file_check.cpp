#include "trocar/campaign_file.h"
#include "trocar/error.h"

namespace trocar {

void check_campaign(const CampaignFile& campaign) {
    const auto refuse = [](const char* sentence, const char* hint = "") {
        throw Error(Fault::usage, sentence, hint);
    };
    const bool listed = !campaign.list.empty() || !campaign.files.empty();
    const bool inputs = !campaign.inputs.sources.empty() || !campaign.inputs.fill.empty();
    const int counts =
        (campaign.trials ? 1 : 0) + (campaign.exhaustive ? 1 : 0) + (campaign.margin ? 1 : 0);
    if (listed && !campaign.populations.empty()) {
        refuse("faults are either listed or drawn, not both",
               "make two campaigns of them; merging their CSV exports is easy");
    }
    if (listed && counts > 0) {
        refuse("listed faults are all tried: there is no number of trials to give");
    }
    if (listed && campaign.faults_per_trial > 1) {
        refuse("listed faults are tried as they are listed: there is no number of faults per trial",
               "join the faults of a trial with +");
    }
    if (counts > 1) {
        refuse("a number of trials, exhaustive, and a margin exclude one another",
               "give one of them");
    }
    if (!campaign.importance.empty() && (listed || campaign.exhaustive)) {
        refuse("importance says how often faults are drawn, and here all of them are tried");
    }
    if (campaign.data && inputs) {
        refuse("inputs come either from data or from inputs, not from both");
    }
    if (campaign.only_correct && !campaign.data) {
        refuse("only_correct needs data with labels");
    }
    if (campaign.exhaustive && campaign.faults_per_trial > 1) {
        refuse("an exhaustive campaign has one fault per trial", "give a number of trials instead");
    }
    if (campaign.margin && !(*campaign.margin > 0 && *campaign.margin < 1)) {
        refuse("a margin lies between 0 and 1", "0.01 is ± 1 point");
    }
    if (!(campaign.confidence > 0 && campaign.confidence < 1)) {
        refuse("a confidence lies between 0 and 1", "0.95 is usual");
    }
    if (campaign.stop_at && !(*campaign.stop_at > 0 && *campaign.stop_at < 1)) {
        refuse("the half-width to stop at lies between 0 and 1", "0.01 is ± 1 point");
    }
    if (!(campaign.audit >= 0 && campaign.audit <= 1)) {
        refuse("the share to audit lies between 0 and 1");
    }
}

}  // namespace trocar
